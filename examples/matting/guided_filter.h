#pragma once

#include <ATen/core/Tensor.h>

namespace matting {

struct GuidedFilterOptions {
  int64_t radius = 24;  ///< of the square window, pixels
  double eps = 1e-4;    ///< smooths where the image varies less than its square root
};

/// Filters `input` (HxW, float) so that its edges follow those of `image` (3xHxW, float in [0, 1]):
/// in each window it is the best linear function of the three colours (He, Sun and Tang, "Guided
/// Image Filtering", 2013, eq. 14 to 16). HxW, float.
at::Tensor guided_filter(const at::Tensor& image, const at::Tensor& input,
                         const GuidedFilterOptions& options);

}  // namespace matting
