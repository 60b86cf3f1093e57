#pragma once

#include <muster/base/exact_sum.h>
#include <muster/metrics/averaged_metric.h>
#include <muster/metrics/metric.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// The mean of values, each with a weight (a count of samples); exact, rounded once. Its one value
/// is named "".
class Mean : public AveragedMetric {
 public:
  /// Adds `value` as if `weight` times; 0 adds nothing. Error of kind `usage` for a negative
  /// weight.
  void update(double value, int64_t weight = 1) { add(value, weight); }
  void update(std::span<const double> values);
};

/// The sum of values; exact, rounded once. Its one value is named "".
class Sum : public SummedMetric {
 public:
  void update(double value) { add(value); }
  void update(std::span<const double> values);

 private:
  [[nodiscard]] double value_from(const ExactSum& sum, int64_t /*weight*/) const override {
    return sum.sum();
  }
};

struct StandardDeviationOptions {
  int64_t correction = 1;  ///< subtracted from the total weight, as torch.std's; 0: of all values
};

/// The standard deviation of values, each with a weight (a count of samples), as torch.std gives
/// it: sqrt((sum of x^2 - (sum of x)^2 / n) / (n - correction)). Sums and the difference are exact,
/// so values far from 0 lose nothing; holds for magnitudes from 1e-140 to 1e140, and 0. Its one
/// value is named "".
class StandardDeviation : public Metric {
 public:
  /// Error of kind `usage` for a negative correction.
  explicit StandardDeviation(StandardDeviationOptions options = {});

  /// Adds `value` as if `weight` times; 0 adds nothing. Error of kind `usage` for a negative
  /// weight.
  void update(double value, int64_t weight = 1);
  void update(std::span<const double> values);

  /// Nothing when the total weight is not above the correction.
  [[nodiscard]] std::optional<double> value() const;

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 private:
  StandardDeviationOptions options_;
  ExactSum sum_;
  ExactSum squares_;
  int64_t weight_ = 0;
};

/// The smaller of two values whatever their order: a NaN wins, and -0 is smaller than 0.
double lower(double one, double two);
/// The greater of two values whatever their order: a NaN wins, and 0 is greater than -0.
double upper(double one, double two);

/// What Min and Max share: the one value that `prefer` chooses of all. Its value is named "".
class Extreme : public Metric {
 public:
  void update(double value);
  void update(std::span<const double> values);

  /// Nothing when nothing was added.
  [[nodiscard]] std::optional<double> value() const { return value_; }

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 protected:
  using Prefer = double (*)(double, double);
  explicit Extreme(Prefer prefer) : prefer_{prefer} {}

 private:
  Prefer prefer_;
  std::optional<double> value_;
};

/// The smallest value; NaN when one was added.
class Min : public Extreme {
 public:
  Min() : Extreme{lower} {}
};

/// The greatest value; NaN when one was added.
class Max : public Extreme {
 public:
  Max() : Extreme{upper} {}
};

}  // namespace muster
