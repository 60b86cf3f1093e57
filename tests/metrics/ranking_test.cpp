#include <muster/metrics/ranking.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace muster {
namespace {

using test::integers;
using test::message_of;
using test::only;
using test::tensor;

template <typename M>
std::optional<double> binary(const std::vector<double>& scores,
                             const std::vector<int64_t>& target) {
  M metric;
  metric.update(tensor(scores, {static_cast<int64_t>(scores.size())}), integers(target));
  return only(metric.compute());
}

TEST(AUROC, IsTheShareOfPairsInOrderWithEqualOnesByHalf) {
  EXPECT_EQ(binary<AUROC>({0.1, 0.4, 0.35, 0.8}, {0, 0, 1, 1}), 0.75);
  EXPECT_EQ(binary<AUROC>({0.5, 0.5, 0.5, 0.9}, {0, 1, 0, 1}), 0.75);
  EXPECT_EQ(binary<AUROC>({0.5, 0.5}, {0, 1}), 0.5);
}

TEST(AUROC, OfOneClassAloneIsZeroAsInTorchMetrics) {
  EXPECT_EQ(binary<AUROC>({0.1, 0.9}, {1, 1}), 0.0);
  EXPECT_EQ(binary<AUROC>({0.1, 0.9}, {0, 0}), 0.0);
}

TEST(AveragePrecision, IsPrecisionWeighedByRisingRecall) {
  EXPECT_DOUBLE_EQ(*binary<AveragePrecision>({0.1, 0.4, 0.35, 0.8}, {0, 0, 1, 1}),
                   0.5 + 0.5 * 2.0 / 3.0);
  EXPECT_EQ(binary<AveragePrecision>({0.3, 0.6}, {0, 0}), 0.0);
  EXPECT_EQ(binary<AveragePrecision>({0.3, 0.6}, {1, 1}), 1.0);
}

TEST(AveragePrecision, LeavesAClassWithoutSamplesOutOfTheMean) {
  const auto scores = tensor({0.8, 0.1, 0.1, 0.2, 0.7, 0.1}, {2, 3});
  AveragePrecision each{{.task = Task::multiclass, .num_classes = 3, .average = Average::none}};
  each.update(scores, integers({0, 1}));
  EXPECT_EQ(each.compute().values.at(1).second, 1.0);
  EXPECT_FALSE(each.compute().values.at(2).second.has_value());
  AveragePrecision mean{{.task = Task::multiclass, .num_classes = 3}};
  mean.update(scores, integers({0, 1}));
  EXPECT_EQ(only(mean.compute()), 1.0);
}

TEST(RankingMetric, OfLabelsWithDimensionsBehindTellsTheLabelsApart) {
  AUROC metric{{.task = Task::multilabel, .num_labels = 2, .average = Average::none}};
  metric.update(tensor({0.1, 0.9, 0.9, 0.1}, {1, 2, 2}), integers({0, 1, 0, 1}, {1, 2, 2}));
  EXPECT_EQ(metric.compute().values.at(0).second, 1.0);
  EXPECT_EQ(metric.compute().values.at(1).second, 0.0);
}

TEST(RankingMetric, KeepsScoresApartThatAModelsOwnPrecisionWouldNot) {
  // Sigmoids in float would both be 1.
  AUROC metric;
  metric.update(tensor({20.0, 25.0}, {2}, at::kFloat), integers({0, 1}));
  EXPECT_EQ(only(metric.compute()), 1.0);
}

TEST(RankingMetric, OfANanIsNan) {
  EXPECT_TRUE(
      std::isnan(*binary<AUROC>({0.1, std::numeric_limits<double>::quiet_NaN(), 0.3}, {0, 1, 1})));
}

TEST(RankingMetric, OfNothingHasNoValue) {
  AUROC classes{{.task = Task::multiclass, .num_classes = 3}};
  classes.update(tensor({}, {0, 3}), integers({}));
  EXPECT_EQ(classes.state(), "");
  EXPECT_FALSE(only(classes.compute()).has_value());
  AUROC metric{{.task = Task::binary, .ignore_index = 9}};
  metric.update(tensor({0.5}, {1}), integers({9}));
  EXPECT_EQ(metric.state(), "");
  EXPECT_FALSE(only(metric.compute()).has_value());
}

TEST(RankingMetric, GivesTheSameBitsForAnySplit) {
  for (const auto average : {Average::macro, Average::weighted, Average::none}) {
    const auto results = test::results_of_splits(
        12,
        [&] {
          return AveragePrecision{{.task = Task::multiclass, .num_classes = 3, .average = average}};
        },
        [](AveragePrecision& metric, int64_t i) {
          const double x = 0.1 * static_cast<double>(i % 5);
          metric.update(tensor({x, 0.3, 0.7 - x, 0.2, x, 0.8 - x}, {2, 3}),
                        integers({i % 3, (i / 2) % 3}));
        });
    EXPECT_EQ(results.size(), 1U);
  }
}

TEST(RankingMetric, RefusesWhatDoesNotFit) {
  message_of(ErrorKind::usage, [] {
    AUROC{{.task = Task::multiclass, .num_classes = 3, .average = Average::micro}};
  });
  AUROC metric;
  message_of(ErrorKind::usage, [&] { metric.update(integers({1}), integers({1})); });
  message_of(ErrorKind::data, [&] { metric.update(tensor({0.1}, {1}), integers({2})); });
  metric.update(tensor({0.1, 0.2}, {2}), integers({0, 1}));
  const auto state = metric.state();
  message_of(ErrorKind::data, [&] { metric.merge(state.substr(0, state.size() - 1)); });
  message_of(ErrorKind::data, [&] { metric.merge(state + "x"); });
}

}  // namespace
}  // namespace muster
