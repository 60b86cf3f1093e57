#include <muster/base/check.h>
#include <muster/metrics/aggregate.h>

#include "src/metrics/state_internal.h"

#include <cmath>
#include <limits>
#include <vector>

namespace muster {

void Mean::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

void Sum::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

namespace {

/// Adds `one` * `other` * `weight`: the rounded product, and by how much it was rounded.
void add_product(ExactSum& sum, double one, double other, int64_t weight) {
  const double product = one * other;
  sum.add(product, weight);
  if (std::isfinite(product)) {
    sum.add(std::fma(one, other, -product), weight);
  }
}

/// Numbers whose sum is what `sum` holds, exactly; the first is that sum rounded.
std::vector<double> parts_of(ExactSum sum) {
  std::vector<double> parts;
  for (double part = sum.sum(); part != 0.0; part = sum.sum()) {
    parts.push_back(part);
    if (!std::isfinite(part)) {
      break;
    }
    sum.add(-part);
  }
  return parts;
}

}  // namespace

StandardDeviation::StandardDeviation(StandardDeviationOptions options) : options_{options} {
  check(options.correction >= 0, "a standard deviation's correction is 0 or more, not {}",
        options.correction);
}

void StandardDeviation::update(double value, int64_t weight) {
  check(weight >= 0, "a weight counts samples and is 0 or more, not {}", weight);
  add_count(weight_, weight);
  sum_.add(value, weight);
  add_product(squares_, value, value, weight);
}

void StandardDeviation::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

std::optional<double> StandardDeviation::value() const {
  if (weight_ <= options_.correction) {
    return std::nullopt;
  }
  ExactSum spread;  // weight * (sum of squares) - (sum)^2, without rounding
  for (const double part : parts_of(squares_)) {
    spread.add(part, weight_);
  }
  const auto parts = parts_of(sum_);
  for (const double one : parts) {
    for (const double other : parts) {
      add_product(spread, -one, other, 1);
    }
  }
  const double variance = spread.mean(weight_) / static_cast<double>(weight_ - options_.correction);
  return std::sqrt(variance);
}

std::string StandardDeviation::state() {
  if (weight_ == 0) {
    return {};
  }
  StateWriter writer;
  ExactMean{sum_, weight_}.write(writer);
  writer.sum(squares_);
  return writer.take();
}

void StandardDeviation::merge(std::string_view state) {
  StateReader reader{state};
  const auto other = ExactMean::read(reader);
  const auto squares = reader.sum();
  reader.finish();
  add_count(weight_, other.count);
  sum_.merge(other.sum);
  squares_.merge(squares);
}

MetricResult StandardDeviation::compute() { return single(value()); }

void StandardDeviation::reset() {
  sum_ = {};
  squares_ = {};
  weight_ = 0;
}

double lower(double one, double two) {
  if (std::isnan(one) || std::isnan(two)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return one < two || (one == two && std::signbit(one)) ? one : two;
}

double upper(double one, double two) {
  if (std::isnan(one) || std::isnan(two)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return one > two || (one == two && !std::signbit(one)) ? one : two;
}

void Extreme::update(double value) { value_ = prefer_(value_.value_or(value), value); }

void Extreme::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

std::string Extreme::state() {
  StateWriter writer;
  if (value_) {
    writer.number(*value_);
  }
  return writer.take();
}

void Extreme::merge(std::string_view state) {
  StateReader reader{state};
  const double value = reader.number();
  reader.finish();
  update(value);
}

MetricResult Extreme::compute() { return single(value_); }

void Extreme::reset() { value_.reset(); }

}  // namespace muster
