#pragma once

#include <ATen/core/Tensor.h>
#include <muster/matting/picture.h>
#include <muster/metrics/matting.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace muster {

/// A copy of an [H, W], [1, H, W] or [1, 1, H, W] tensor on the host as [H, W], contiguous: uint8
/// stays, double stays, float and less become float. Error of kind `usage` that begins with `what`
/// for another shape or dtype.
at::Tensor copy_alpha(const at::Tensor& tensor, std::string_view what);

/// The same for a trimap: uint8 stays, every other number becomes float.
at::Tensor copy_trimap(const at::Tensor& tensor, std::string_view what);

/// The values of what `copy_alpha` gave, on the scale of Picture<T>. They lie in the tensor where
/// they are that already, else in `memory`. Error of kind `data` for a value outside a declared
/// range of bytes.
template <typename T>
Picture<T> alpha_picture(const at::Tensor& host, AlphaRange range, std::string_view what,
                         std::vector<T>& memory);

/// The trimap as 0, 128 and 255. Error of kind `data` for a value that `coding` does not have.
Picture8 trimap_picture(const at::Tensor& host, TrimapCoding coding, std::vector<uint8_t>& memory);

extern template Picture8 alpha_picture(const at::Tensor&, AlphaRange, std::string_view,
                                       std::vector<uint8_t>&);
extern template PictureF alpha_picture(const at::Tensor&, AlphaRange, std::string_view,
                                       std::vector<float>&);
extern template PictureD alpha_picture(const at::Tensor&, AlphaRange, std::string_view,
                                       std::vector<double>&);

}  // namespace muster
