#include <muster/metrics/regression.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

using test::integers;
using test::message_of;
using test::tensor;

TEST(MeanSquaredError, IsOfAllElementsOrItsRoot) {
  MeanSquaredError squared;
  MeanSquaredError root{{.squared = false}};
  MeanAbsoluteError absolute;
  const auto preds = tensor({1, 2, 3, 4}, {2, 2}, at::kFloat);
  const auto target = integers({1, 2, 0, 8}, {2, 2});
  squared.update(preds, target);
  root.update(preds, target);
  absolute.update(preds, target);
  EXPECT_EQ(squared.value(), 25.0 / 4.0);
  EXPECT_EQ(root.value(), 2.5);
  EXPECT_EQ(absolute.value(), 7.0 / 4.0);
}

TEST(MeanSquaredError, DoesNotWrapAroundBytes) {
  MeanAbsoluteError metric;
  metric.update(tensor({0, 255}, {2}, at::kByte), tensor({255, 0}, {2}, at::kByte));
  EXPECT_EQ(metric.value(), 255.0);
}

TEST(MeanSquaredError, GivesTheSameBitsForAnySplit) {
  const auto results = test::results_of_splits(
      20, [] { return MeanSquaredError{{.squared = false}}; },
      [](MeanSquaredError& metric, int64_t i) {
        const double x = std::exp(static_cast<double>(i) - 10.0);
        metric.update(tensor({x, 0.1}, {2}), tensor({x / 3.0, x}, {2}));
      });
  EXPECT_EQ(results.size(), 1U);
}

TEST(MeanSquaredError, OfNothingHasNoValueAndOfANanIsNan) {
  MeanSquaredError metric{{.squared = false}};
  metric.update(tensor({}, {0, 3}), tensor({}, {0, 3}));
  EXPECT_FALSE(metric.value().has_value());
  EXPECT_EQ(metric.state(), "");
  metric.update(tensor({std::numeric_limits<double>::quiet_NaN()}, {1}), tensor({1}, {1}));
  EXPECT_TRUE(std::isnan(metric.value().value_or(0.0)));
}

TEST(MeanAbsoluteError, RefusesTensorsOfOtherShapesAndTypes) {
  MeanAbsoluteError metric;
  const auto message = message_of(ErrorKind::usage, [&] {
    metric.update(tensor({1, 2}, {2}), tensor({1, 2}, {1, 2}));
  });
  EXPECT_NE(message.find("float64[1, 2]"), std::string::npos) << message;
  message_of(ErrorKind::usage,
             [&] { metric.update(tensor({1}, {1}, at::kBool), tensor({1}, {1})); });
  message_of(ErrorKind::usage, [&] { metric.update(at::Tensor{}, tensor({1}, {1})); });
}

}  // namespace
}  // namespace muster
