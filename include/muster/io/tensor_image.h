#pragma once

#include <ATen/core/Tensor.h>
#include <muster/io/image.h>
#include <muster/io/png.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster {

/// What the numbers of a tensor made from a picture are.
enum class PixelType {
  uint8,    ///< 0..255; values of 16 bits are scaled and rounded to the nearest
  float32,  ///< 0..1: the value divided by the file's full scale, never cut to 8 bits
};

/// How a picture becomes a tensor.
struct ReadOptions {
  ImageMode mode = ImageMode::unchanged;  ///< which channels are wanted
  PixelType type = PixelType::uint8;      ///< which numbers are wanted
  DecodeLimits limits{};                  ///< what the header may claim
};

/// The PNG or JPEG at `path` as a contiguous CPU tensor of C x H x W, in memory that torch
/// allocated. See `decode_image` for what is read and how. Error of kind `data` that names the
/// path.
at::Tensor read_image(const std::filesystem::path& path, const ReadOptions& options = {});

/// A decoded picture as a tensor of C x H x W.
at::Tensor image_to_tensor(const Image& image, PixelType type = PixelType::uint8);

/// What `encode_png` wrote.
struct PngInfo {
  int64_t width = 0;   ///< pixels
  int64_t height = 0;  ///< pixels
  int64_t out_of_range =
      0;  ///< values of a floating tensor below 0 or above 1 (clamped) or NaN (written as 0)
};

/// The image as a PNG file of 8 bits.
///
/// Shapes: H x W, C x H x W, or H x W x C, with C = 1 gray, 3 RGB or 4 RGBA. Where both the first
/// and the last size could be C, it is the first. Types: uint8 as it is; bool as 0 and 255; float,
/// double, half and bfloat16 in [0, 1], times 255 and rounded to the nearest. Any strides, any
/// device; the tensor is not changed. From any thread. Error of kind `usage` that names shape and
/// type for anything else.
std::string encode_png(const at::Tensor& image, const PngOptions& options = {},
                       PngInfo* info = nullptr);

/// Refuses by shape and type what `encode_png` would refuse, without reading the values.
void check_is_image(const at::Tensor& image);

}  // namespace muster
