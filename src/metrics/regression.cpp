#include <muster/metrics/regression.h>

#include "src/metrics/host_values_internal.h"

#include <cmath>
#include <vector>

namespace muster {

namespace {

std::vector<double> differences(const at::Tensor& preds, const at::Tensor& target) {
  check_numbers(preds, target);
  auto values = host_doubles(preds);
  const auto truth = host_doubles(target);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] -= truth[i];
  }
  return values;
}

}  // namespace

void MeanSquaredError::update(const at::Tensor& preds, const at::Tensor& target) {
  for (const double difference : differences(preds, target)) {
    add(difference * difference);
  }
}

double MeanSquaredError::value_of(double mean) const {
  return options_.squared ? mean : std::sqrt(mean);
}

void MeanAbsoluteError::update(const at::Tensor& preds, const at::Tensor& target) {
  for (const double difference : differences(preds, target)) {
    add(std::abs(difference));
  }
}

}  // namespace muster
