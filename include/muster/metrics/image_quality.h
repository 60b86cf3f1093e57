#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/averaged_metric.h>

#include <cstdint>

namespace muster {

struct PeakSignalNoiseRatioOptions {
  double data_range = 0.0;  ///< greatest minus smallest value a picture can have; must be given
  double base = 10.0;       ///< of the logarithm; above 1. TorchMetrics' name
  bool per_image = false;   ///< the mean of each picture's ratio, TorchMetrics' dim=(1, 2, 3)
};

/// 10 log_base(data_range^2 / mean squared error), in dB: of the mean over all elements of the data
/// set, or the mean over pictures of each picture's own. As TorchMetrics 1.9 for dtype double.
/// Infinite without any error. Its one value is named ""; none without elements.
class PeakSignalNoiseRatio : public AveragedMetric {
 public:
  /// Error of kind `usage` for a data range that is not above 0, and a base not above 1.
  explicit PeakSignalNoiseRatio(PeakSignalNoiseRatioOptions options);

  /// Tensors of one shape, of integers or floating, any device; the first dimension counts the
  /// pictures where they are told apart. Error of kind `usage` for others.
  void update(const at::Tensor& preds, const at::Tensor& target);

 protected:
  [[nodiscard]] double value_of(double mean) const override;

 private:
  [[nodiscard]] double ratio(double mean_squared_error) const;

  PeakSignalNoiseRatioOptions options_;
};

/// TorchMetrics' names.
struct StructuralSimilarityIndexMeasureOptions {
  double data_range = 0.0;      ///< greatest minus smallest value a picture can have; must be given
  bool gaussian_kernel = true;  ///< windows are weighed by a Gaussian, else alike
  double sigma = 1.5;  ///< of the Gaussian, in pixels; its window is 2 * int(3.5 sigma + 0.5) + 1
  int64_t kernel_size = 11;  ///< side of a window that is no Gaussian; odd
  double k1 = 0.01;          ///< keeps the luminance term finite
  double k2 = 0.03;          ///< keeps the contrast term finite
};

/// SSIM (Wang et al., "Image quality assessment", 2004): the mean over pictures of each picture's
/// mean over its pixels and channels, in double, borders mirrored, as TorchMetrics 1.9 has it for
/// dtype double and a given data range. Its one value is named ""; none without pictures.
class StructuralSimilarityIndexMeasure : public AveragedMetric {
 public:
  /// Error of kind `usage` for a data range or sigma that is not above 0, and an even kernel.
  explicit StructuralSimilarityIndexMeasure(StructuralSimilarityIndexMeasureOptions options);

  /// [N, C, H, W] of one shape, of integers or floating, any device; H and W above half a window
  /// (6 by default). Pictures of other updates may have other sizes. Error of kind `usage` for
  /// others.
  void update(const at::Tensor& preds, const at::Tensor& target);

 private:
  StructuralSimilarityIndexMeasureOptions options_;
};

}  // namespace muster
