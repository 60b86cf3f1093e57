#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/averaged_metric.h>

namespace muster {

struct MeanSquaredErrorOptions {
  bool squared = true;  ///< false: the root of the mean (RMSE); TorchMetrics' name
};

/// The mean of (preds - target)^2 over all elements, or its root: exact, of squares that are
/// computed in double; as TorchMetrics 1.9 for dtype double. Its one value is named "".
class MeanSquaredError : public AveragedMetric {
 public:
  explicit MeanSquaredError(MeanSquaredErrorOptions options = {}) : options_{options} {}

  /// Tensors of one shape, of integers or floating, any device. Error of kind `usage` for others.
  void update(const at::Tensor& preds, const at::Tensor& target);

 protected:
  [[nodiscard]] double value_of(double mean) const override;

 private:
  MeanSquaredErrorOptions options_;
};

/// The mean of |preds - target| over all elements, as MeanSquaredError's.
class MeanAbsoluteError : public AveragedMetric {
 public:
  /// As MeanSquaredError::update.
  void update(const at::Tensor& preds, const at::Tensor& target);
};

}  // namespace muster
