#include <muster/metrics/mean_average_precision.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace muster {
namespace {

using test::integers;
using test::message_of;
using test::tensor;

using Rows = std::vector<std::vector<double>>;

at::Tensor boxes(const Rows& rows) {
  std::vector<double> numbers;
  for (const auto& row : rows) {
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return tensor(numbers, {static_cast<int64_t>(rows.size()), 4});
}

at::Tensor vector(const std::vector<double>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}

/// All boxes are of class 1.
DetectedBoxes found(const Rows& rows, const std::vector<double>& scores) {
  return {boxes(rows), vector(scores), integers(std::vector<int64_t>(rows.size(), 1))};
}

TrueBoxes known(const Rows& rows) {
  return {boxes(rows), integers(std::vector<int64_t>(rows.size(), 1))};
}

std::map<std::string, std::optional<double>> values_of(MeanAveragePrecision& metric) {
  const auto result = metric.compute();
  return {result.values.begin(), result.values.end()};
}

TEST(MeanAveragePrecision, OfBoxesThatAreRightIsOne) {
  MeanAveragePrecision metric{{.class_metrics = true}};
  metric.update(0, found({{0, 0, 10, 10}, {50, 50, 90, 99}}, {0.9, 0.2}),
                known({{50, 50, 90, 99}, {0, 0, 10, 10}}));
  const auto values = values_of(metric);
  for (const char* name : {"map", "map_50", "map_75", "map_small", "map_medium", "mar_10",
                           "mar_100", "map_per_class/1", "mar_100_per_class/1"}) {
    EXPECT_NEAR(values.at(name).value_or(-1.0), 1.0, 1e-12) << name;
  }
  EXPECT_EQ(values.at("mar_1"), 0.5);
  EXPECT_FALSE(values.at("map_large").has_value());
  EXPECT_FALSE(values.at("mar_large").has_value());
}

TEST(MeanAveragePrecision, CountsABoxOnceAndFallsWithTheOverlap) {
  MeanAveragePrecision metric;
  // Intersection over union is 0.6: right for thresholds 0.50, 0.55 and 0.60. The second detection
  // of the same box is wrong, but surer.
  metric.update(3, found({{0, 0, 10, 6}, {0, 0, 10, 6}}, {0.5, 0.9}), known({{0, 0, 10, 10}}));
  metric.update(1, found({{0, 0, 1, 1}}, {0.95}), known({}));
  const auto values = values_of(metric);
  EXPECT_NEAR(*values.at("map_50"), 0.5, 1e-12);
  EXPECT_EQ(values.at("map_75"), 0.0);
  EXPECT_NEAR(*values.at("map"), 0.15, 1e-12);
  EXPECT_NEAR(*values.at("mar_100"), 0.3, 1e-12);
}

TEST(MeanAveragePrecision, LeavesCrowdsAndWhatIsInThemOut) {
  MeanAveragePrecision metric;
  auto truth = known({{0, 0, 10, 10}, {100, 100, 200, 200}});
  truth.iscrowd = integers({0, 1});
  metric.update(
      0, found({{110, 110, 120, 120}, {150, 150, 160, 170}, {0, 0, 10, 10}}, {0.9, 0.8, 0.7}),
      truth);
  const auto values = values_of(metric);
  EXPECT_NEAR(*values.at("map"), 1.0, 1e-12);
  EXPECT_FALSE(values.at("map_large").has_value());
}

TEST(MeanAveragePrecision, TakesTheAreaThatIsGiven) {
  MeanAveragePrecision metric{{.box_format = BoxFormat::xywh}};
  auto truth = known({{0, 0, 40, 40}});
  truth.area = vector({500});
  metric.update(0, found({{0, 0, 40, 40}}, {0.9}), truth);
  const auto values = values_of(metric);
  EXPECT_NEAR(*values.at("map_small"), 1.0, 1e-12);
  EXPECT_FALSE(values.at("map_medium").has_value());
}

TEST(MeanAveragePrecision, ReadsEveryFormatOfBoxes) {
  const std::map<BoxFormat, std::vector<double>> same{{BoxFormat::xyxy, {10, 20, 40, 60}},
                                                      {BoxFormat::xywh, {10, 20, 30, 40}},
                                                      {BoxFormat::cxcywh, {25, 40, 30, 40}}};
  for (const auto& [format, box] : same) {
    MeanAveragePrecision metric{{.box_format = format}};
    metric.update(0, found({box}, {0.5}), known({box}));
    EXPECT_NEAR(*values_of(metric).at("map_medium"), 1.0, 1e-12);
  }
}

TEST(MeanAveragePrecision, OfNothingHasNoValue) {
  MeanAveragePrecision metric;
  EXPECT_EQ(metric.state(), "");
  for (const auto& [name, value] : metric.compute().values) {
    EXPECT_FALSE(value.has_value()) << name;
  }
  metric.update(0, {vector({}), vector({}), integers({})}, known({}));
  EXPECT_NE(metric.state(), "");
  EXPECT_FALSE(values_of(metric).at("map").has_value());
}

TEST(MeanAveragePrecision, GivesTheSameBitsForAnySplitAlsoOfEqualScores) {
  const auto results = test::results_of_splits(
      12, [] { return MeanAveragePrecision{{.class_metrics = true}}; },
      [](MeanAveragePrecision& metric, int64_t i) {
        const double x = static_cast<double>(i);
        auto preds = found({{0, 0, 10 + x, 10}, {x, x, 50, 60}, {5, 5, 9, 9}}, {0.5, 0.5, 0.7});
        preds.labels = integers({1, 1 + i % 3, 2});
        auto truth = known({{0, 0, 10, 10}, {0, 0, 50, 60}});
        truth.labels = integers({1, 1 + i % 2});
        metric.update(i, preds, truth);
      });
  EXPECT_EQ(results.size(), 1U);
}

TEST(MeanAveragePrecision, RefusesAPictureThatWasAddedBefore) {
  std::vector<MeanAveragePrecision> ranks(2);
  for (auto& rank : ranks) {
    rank.update(17, found({}, {}), known({{0, 0, 1, 1}}));
  }
  const auto again = [&] { ranks[0].update(17, found({}, {}), known({})); };
  EXPECT_NE(message_of(ErrorKind::usage, again).find("17"), std::string::npos);
  const auto both = [&] { test::sync(ranks); };
  EXPECT_NE(message_of(ErrorKind::usage, both).find("17"), std::string::npos);
}

TEST(MeanAveragePrecision, NamesThePictureWhoseBoxesDoNotFit) {
  MeanAveragePrecision metric;
  const Rows one{{0, 0, 1, 1}};
  const auto refuses = [&](ErrorKind kind, const DetectedBoxes& preds, const TrueBoxes& target) {
    const auto message = message_of(kind, [&] { metric.update(23, preds, target); });
    EXPECT_NE(message.find("picture 23"), std::string::npos) << message;
  };
  auto preds = found(one, {0.5});
  refuses(ErrorKind::usage, {boxes(one), vector({0.5, 0.5}), integers({1})}, known(one));
  refuses(ErrorKind::usage, {vector({1, 2, 3, 4}), vector({0.5}), integers({1})}, known(one));
  refuses(ErrorKind::usage, {boxes(one), vector({0.5}), vector({1})}, known(one));
  refuses(ErrorKind::usage, {boxes(one), vector({0.5}), {}}, known(one));
  refuses(ErrorKind::usage, preds, {boxes(one), integers({1}), integers({0, 0})});
  refuses(ErrorKind::data, found(one, {std::numeric_limits<double>::quiet_NaN()}), known(one));
  refuses(ErrorKind::data, preds, known({{0, 0, HUGE_VAL, 1}}));
  EXPECT_EQ(metric.state(), "");
}

}  // namespace
}  // namespace muster
