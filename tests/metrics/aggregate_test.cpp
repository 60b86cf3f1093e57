#include <muster/base/error.h>
#include <muster/base/random.h>
#include <muster/metrics/aggregate.h>

#include "tests/metrics/ranks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace muster {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// Values over many decades, whose floating-point sum depends on the order.
std::vector<double> scattered(Rng& rng, int count) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    values.push_back(std::ldexp(rng.uniform(-1.0, 1.0), static_cast<int>(rng.below(120)) - 60));
  }
  return values;
}

template <typename AnyMetric>
std::set<std::string> results_of_splits(const std::vector<double>& values) {
  return test::results_of_splits(
      static_cast<int64_t>(values.size()), [] { return AnyMetric{}; },
      [&](AnyMetric& metric, int64_t i) { metric.update(values[static_cast<size_t>(i)]); });
}

TEST(Aggregates, GiveTheSameBitsForAnySplitAndOrder) {
  Rng rng{3};
  auto values = scattered(rng, 50);
  values.insert(values.end(), {0.0, -0.0, 1e300, -1e300, 5e-324});
  EXPECT_EQ(results_of_splits<Mean>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Sum>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Min>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Max>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<StandardDeviation>(scattered(rng, 50)).size(), 1U);
}

TEST(Aggregates, GiveTheSameBitsForAnySplitOfZerosOfBothSigns) {
  const std::vector<double> values{0.0, -0.0, 0.0, -0.0};
  EXPECT_EQ(results_of_splits<Min>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Max>(values).size(), 1U);
  EXPECT_TRUE(std::signbit(lower(0.0, -0.0)));
  EXPECT_FALSE(std::signbit(upper(-0.0, 0.0)));
}

TEST(Aggregates, LetANanThroughWhereverItIs) {
  const std::vector<double> values{1.0, -nan_value, 2.0, nan_value, -3.0};
  EXPECT_EQ(results_of_splits<Mean>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Sum>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Min>(values).size(), 1U);
  EXPECT_EQ(results_of_splits<Max>(values).size(), 1U);
  Max max;
  max.update(values);
  ASSERT_TRUE(max.value().has_value());
  EXPECT_TRUE(std::isnan(*max.value()));
  Mean mean;
  mean.update(values);
  EXPECT_TRUE(std::isnan(*mean.value()));
}

TEST(Mean, WeighsBatchesByTheirSamples) {
  std::vector<Mean> ranks(2);
  ranks[0].update(1.0, 256);
  ranks[1].update(2.0, 256);
  ranks[0].update(4.0, 10);
  const auto result = test::sync(ranks);
  ASSERT_EQ(result.values.size(), 1U);
  EXPECT_EQ(result.values[0].first, "");
  EXPECT_EQ(result.values[0].second, 808.0 / 522.0);
}

TEST(Mean, IsRoundedOnce) {
  // The sum, 2^53 + 2, is a double; a running double would have lost both ones.
  Mean mean;
  mean.update(std::vector<double>{9007199254740992.0, 1.0, 1.0});
  EXPECT_EQ(mean.value(), 9007199254740994.0 / 3.0);
}

TEST(Mean, OfAWeightOfZeroIsNoValue) {
  Mean mean;
  mean.update(7.0, 0);
  EXPECT_FALSE(mean.value().has_value());
  EXPECT_EQ(mean.state(), "");
  EXPECT_THROW(mean.update(7.0, -1), Error);
}

TEST(Mean, OfAZeroOnOneRankAndNothingOnTheOtherIsZero) {
  std::vector<Mean> ranks(2);
  ranks[0].update(0.0);
  EXPECT_EQ(test::sync(ranks).values[0].second, 0.0);
}

TEST(Mean, OfAValueOnOneRankAndNothingOnTheOtherIsThatValueOnBoth) {
  std::vector<Mean> ranks(2);
  ranks[0].update(0.8);
  test::sync(ranks);
  EXPECT_EQ(ranks[0].value(), 0.8);
  EXPECT_EQ(ranks[1].value(), 0.8);
}

TEST(Mean, RefusesAWeightBeyond63Bits) {
  Mean mean;
  mean.update(1.0, std::numeric_limits<int64_t>::max());
  EXPECT_THROW(mean.update(1.0), Error);
}

TEST(StandardDeviation, LosesNothingFarFromZero) {
  // Sums of squares in double would have lost all of it: 1e9 squared has steps of 128.
  StandardDeviation metric;
  metric.update(std::vector<double>{1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0, 1e9 + 4.0});
  EXPECT_EQ(metric.value(), std::sqrt(5.0 / 3.0));
  StandardDeviation of_all{{.correction = 0}};
  of_all.update(1e15, 3);
  of_all.update(1e15 + 4.0);
  EXPECT_EQ(of_all.value(), std::sqrt(3.0));
}

TEST(StandardDeviation, OfEqualValuesIsZero) {
  StandardDeviation metric;
  metric.update(0.1, 1000);
  EXPECT_EQ(metric.value(), 0.0);
}

TEST(StandardDeviation, OfOneValueIsNoneUnlessItIsTheWhole) {
  StandardDeviation metric;
  EXPECT_FALSE(metric.value().has_value());
  metric.update(3.0);
  EXPECT_FALSE(metric.value().has_value());
  StandardDeviation of_all{{.correction = 0}};
  of_all.update(3.0);
  EXPECT_EQ(of_all.value(), 0.0);
  EXPECT_THROW((StandardDeviation{{.correction = -1}}), Error);
}

TEST(StandardDeviation, LetsANanAndAnInfinityThrough) {
  for (const double value : {nan_value, HUGE_VAL}) {
    StandardDeviation metric;
    metric.update(std::vector<double>{1.0, value, 2.0});
    EXPECT_TRUE(std::isnan(metric.value().value_or(0.0)));
  }
}

TEST(Aggregates, OfNothingHaveNoValueAndNoState) {
  Mean mean;
  Sum sum;
  Min min;
  Max max;
  StandardDeviation spread;
  for (Metric* metric :
       {static_cast<Metric*>(&mean), static_cast<Metric*>(&sum), static_cast<Metric*>(&min),
        static_cast<Metric*>(&max), static_cast<Metric*>(&spread)}) {
    EXPECT_EQ(metric->state(), "");
    ASSERT_EQ(metric->compute().values.size(), 1U);
    EXPECT_FALSE(metric->compute().values[0].second.has_value());
  }
}

TEST(Aggregates, AreEmptyAfterReset) {
  Min min;
  min.update(-5.0);
  min.reset();
  min.update(3.0);
  EXPECT_EQ(min.value(), 3.0);
  Sum sum;
  sum.update(nan_value);
  sum.reset();
  EXPECT_EQ(sum.state(), "");
  sum.update(2.0);
  EXPECT_EQ(sum.value(), 2.0);
}

TEST(Aggregates, RefuseAStateThatIsCutOrTooLong) {
  Mean mean;
  mean.update(1.5);
  const std::string state = mean.state();
  Mean other;
  for (size_t length = 1; length < state.size(); ++length) {
    EXPECT_THROW(other.merge(std::string_view{state}.substr(0, length)), Error) << length;
  }
  EXPECT_THROW(other.merge(state + "x"), Error);
  EXPECT_FALSE(other.value().has_value());
}

}  // namespace
}  // namespace muster
