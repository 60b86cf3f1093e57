#pragma once

#include <ATen/core/Tensor.h>
#include <muster/base/error.h>
#include <muster/metrics/metric.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::test {

/// A tensor of these numbers, row-major.
at::Tensor tensor(const std::vector<double>& values, const std::vector<int64_t>& shape,
                  at::ScalarType dtype = at::kDouble);
at::Tensor integers(const std::vector<int64_t>& values, const std::vector<int64_t>& shape);
/// The one-dimensional tensor of these whole numbers.
at::Tensor integers(const std::vector<int64_t>& values);

/// The one value of a metric, which has the metric's own name.
std::optional<double> only(const MetricResult& result);

/// The message of the error of this kind that `call` throws.
template <typename Call>
std::string message_of(ErrorKind kind, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace muster::test
