#include "tests/metrics/tensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace muster::test {

at::Tensor tensor(const std::vector<double>& values, const std::vector<int64_t>& shape,
                  at::ScalarType dtype) {
  auto result = at::empty(shape, at::kDouble);
  EXPECT_EQ(result.numel(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<double>());
  return result.to(dtype);
}

at::Tensor integers(const std::vector<int64_t>& values, const std::vector<int64_t>& shape) {
  auto result = at::empty(shape, at::kLong);
  EXPECT_EQ(result.numel(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<int64_t>());
  return result;
}

at::Tensor integers(const std::vector<int64_t>& values) {
  return integers(values, {static_cast<int64_t>(values.size())});
}

std::optional<double> only(const MetricResult& result) {
  EXPECT_EQ(result.values.size(), 1U);
  EXPECT_EQ(result.values.at(0).first, "");
  return result.values.at(0).second;
}

}  // namespace muster::test
