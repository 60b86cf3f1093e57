#pragma once

#include <muster/base/exact_sum.h>
#include <muster/metrics/metric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// Base of metrics that come from one sum and the total weight of what is in it: exact. Its one
/// value is named "".
class SummedMetric : public Metric {
 public:
  /// Nothing when the total weight is 0.
  [[nodiscard]] std::optional<double> value() const;

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 protected:
  /// Adds `value` as if `weight` times; 0 adds nothing. Error of kind `usage` for a negative
  /// weight.
  void add(double value, int64_t weight = 1);
  /// The metric's value; `weight` is above 0.
  [[nodiscard]] virtual double value_from(const ExactSum& sum, int64_t weight) const = 0;

 private:
  ExactSum sum_;
  int64_t weight_ = 0;
};

/// Base of metrics that come from one mean: exact, rounded once. Derive from it, and call `add` in
/// an `update` of your own.
class AveragedMetric : public SummedMetric {
 protected:
  /// The metric's value from the mean.
  [[nodiscard]] virtual double value_of(double mean) const { return mean; }

 private:
  [[nodiscard]] double value_from(const ExactSum& sum, int64_t weight) const final {
    return value_of(sum.mean(weight));
  }
};

}  // namespace muster
