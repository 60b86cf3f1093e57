#include <muster/metrics/segmentation.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace muster {
namespace {

using test::integers;
using test::message_of;
using test::tensor;

std::map<std::string, std::optional<double>> by_name(const MetricResult& result) {
  return {result.values.begin(), result.values.end()};
}

TEST(MeanIoU, IsTheMeanOverTheClassesOfEachSample) {
  MeanIoU metric{{.num_classes = 3, .per_class = true}};
  metric.update(integers({0, 0, 1, 1, 0, 0, 0, 0}, {2, 4}),
                integers({0, 1, 1, 1, 0, 0, 0, 0}, {2, 4}));
  const auto values = by_name(metric.compute());
  // Sample 0: 1/2 and 2/3; sample 1: class 0 alone, 1.
  EXPECT_DOUBLE_EQ(*values.at(""), (0.5 + 2.0 / 3.0 + 1.0) / 3.0);
  EXPECT_EQ(values.at("0"), 0.75);
  EXPECT_EQ(values.at("1"), 2.0 / 3.0);
  EXPECT_FALSE(values.at("2").has_value());
}

TEST(MeanIoU, OfTheWholeDataSetAddsPixelsFirst) {
  MeanIoU metric{
      {.num_classes = 3, .aggregation_level = AggregationLevel::global, .per_class = true}};
  metric.update(integers({0, 0, 1, 1}, {1, 4}), integers({0, 1, 1, 1}, {1, 4}));
  metric.update(integers({0, 0, 0, 0}, {1, 4}), integers({0, 0, 0, 0}, {1, 4}));
  const auto values = by_name(metric.compute());
  EXPECT_EQ(values.at("0"), 5.0 / 6.0);
  EXPECT_EQ(values.at("1"), 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(*values.at(""), 0.75);
}

TEST(SegmentationMetric, LeavesOutBackgroundAndWhatIsToBeIgnored) {
  MeanIoU metric{{.num_classes = 4,
                  .include_background = false,
                  .ignore_index = 3,
                  .per_class = true,
                  .class_names = {"ground", "road", "car", "void"}}};
  metric.update(integers({0, 1, 2, 3, 2}, {1, 5}), integers({0, 1, 1, 2, 3}, {1, 5}));
  const auto values = by_name(metric.compute());
  EXPECT_EQ(values.size(), 3U);
  EXPECT_EQ(values.at("road"), 0.5);
  EXPECT_EQ(values.at("car"), 0.0);
  EXPECT_EQ(values.at(""), 0.25);
}

TEST(DiceScore, TakesTheHighestScoreOfEachPixel) {
  DiceScore metric{{.num_classes = 2, .average = Average::none}};
  metric.update(tensor({3, 1, 1, 0, 2, 2}, {1, 2, 3}, at::kHalf), integers({0, 1, 0}, {1, 3}));
  const auto values = by_name(metric.compute());
  EXPECT_EQ(values.at("0"), 2.0 / 3.0);
  EXPECT_EQ(values.at("1"), 2.0 / 3.0);
}

TEST(DiceScore, OfASampleWithoutForegroundIsLeftOutUnlessItWasSaidToHaveSome) {
  DiceScore metric{{.num_classes = 2, .include_background = false, .average = Average::weighted}};
  metric.update(integers({0, 0}, {1, 2}), integers({0, 0}, {1, 2}));
  EXPECT_EQ(metric.state(), "");
  EXPECT_FALSE(by_name(metric.compute()).at("").has_value());
  metric.update(integers({1, 1}, {1, 2}), integers({1, 1}, {1, 2}));
  EXPECT_EQ(by_name(metric.compute()).at(""), 1.0);
  metric.update(integers({0, 1}, {1, 2}), integers({0, 0}, {1, 2}));
  EXPECT_EQ(by_name(metric.compute()).at(""), 0.5);
}

TEST(SegmentationMetric, OfNothingHasNoValueUnderEveryName) {
  MeanIoU iou{{.num_classes = 2, .per_class = true}};
  EXPECT_EQ(by_name(iou.compute()).size(), 3U);
  for (const auto& [name, value] : iou.compute().values) {
    EXPECT_FALSE(value.has_value()) << name;
  }
  DiceScore dice{{.num_classes = 2, .aggregation_level = AggregationLevel::global}};
  dice.update(integers({}, {0, 3, 3}), integers({}, {0, 3, 3}));
  EXPECT_EQ(dice.state(), "");
  EXPECT_FALSE(by_name(dice.compute()).at("").has_value());
}

TEST(SegmentationMetric, GivesTheSameBitsForAnySplit) {
  for (const auto level : {AggregationLevel::samplewise, AggregationLevel::global}) {
    for (const auto average : {Average::macro, Average::none}) {
      const auto results = test::results_of_splits(
          10,
          [&] {
            return DiceScore{{.num_classes = 4, .aggregation_level = level, .average = average}};
          },
          [](DiceScore& metric, int64_t i) {
            metric.update(integers({i % 3, 1, (i / 2) % 4, 0, i % 2}, {1, 5}),
                          integers({0, i % 4, 2, 1, (i / 3) % 3}, {1, 5}));
          });
      EXPECT_EQ(results.size(), 1U);
    }
  }
}

TEST(SegmentationMetric, RefusesWhatDoesNotFit) {
  message_of(ErrorKind::usage, [] { MeanIoU{{.num_classes = 1}}; });
  MeanIoU metric{{.num_classes = 2}};
  EXPECT_NE(message_of(ErrorKind::data,
                       [&] {
                         metric.update(integers({0, 1}, {1, 2}), integers({0, 255}, {1, 2}));
                       })
                .find("255"),
            std::string::npos);
  message_of(ErrorKind::usage, [&] { metric.update(integers({0, 1}), integers({0}, {1, 1})); });
  message_of(ErrorKind::data, [&] { metric.merge("no state"); });
  EXPECT_EQ(metric.state(), "");
}

}  // namespace
}  // namespace muster
