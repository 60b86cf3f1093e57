#include <muster/base/check.h>
#include <muster/metrics/averaged_metric.h>

#include "src/metrics/state_internal.h"

namespace muster {

void SummedMetric::add(double value, int64_t weight) {
  check(weight >= 0, "a weight counts samples and is 0 or more, not {}", weight);
  add_count(weight_, weight);
  sum_.add(value, weight);
}

std::optional<double> SummedMetric::value() const {
  return weight_ > 0 ? std::optional{value_from(sum_, weight_)} : std::nullopt;
}

std::string SummedMetric::state() {
  if (weight_ == 0) {
    return {};
  }
  StateWriter writer;
  ExactMean{sum_, weight_}.write(writer);
  return writer.take();
}

void SummedMetric::merge(std::string_view state) {
  StateReader reader{state};
  const auto other = ExactMean::read(reader);
  reader.finish();
  add_count(weight_, other.count);
  sum_.merge(other.sum);
}

MetricResult SummedMetric::compute() { return single(value()); }

void SummedMetric::reset() {
  sum_ = {};
  weight_ = 0;
}

}  // namespace muster
