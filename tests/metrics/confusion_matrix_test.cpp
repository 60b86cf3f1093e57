#include <muster/metrics/confusion_matrix.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster {
namespace {

using test::integers;
using test::message_of;

ConfusionMatrix animals(Normalize normalize = Normalize::none) {
  return ConfusionMatrix{
      {.num_classes = 3, .normalize = normalize, .class_names = {"cat", "dog", "eel"}}};
}

TEST(ConfusionMatrix, HasARowForEachTrueClass) {
  auto metric = animals();
  metric.update(integers({0, 1, 1, 2}), integers({0, 0, 0, 1}));
  EXPECT_EQ(metric.counts(), (std::vector<int64_t>{1, 2, 0, 0, 0, 1, 0, 0, 0}));
  const auto result = metric.compute();
  EXPECT_TRUE(result.values.empty());
  const auto& table = result.tables.at(0);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"actual", "cat", "dog", "eel"}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[1].index, 1);
  EXPECT_EQ(table.rows[0].cells, (std::vector<Cell>{"cat", 1.0, 2.0, 0.0}));
  EXPECT_EQ(table.rows[1].cells, (std::vector<Cell>{"dog", 0.0, 0.0, 1.0}));
}

TEST(ConfusionMatrix, IsDividedByRowsColumnsOrAll) {
  const auto second_row = [](Normalize normalize) {
    auto metric = animals(normalize);
    metric.update(integers({0, 0, 1, 1}), integers({0, 1, 1, 1}));
    return metric.compute().tables.at(0).rows.at(1).cells;
  };
  EXPECT_EQ(second_row(Normalize::actual), (std::vector<Cell>{"dog", 1.0 / 3.0, 2.0 / 3.0, 0.0}));
  EXPECT_EQ(second_row(Normalize::predicted), (std::vector<Cell>{"dog", 0.5, 1.0, 0.0}));
  EXPECT_EQ(second_row(Normalize::all), (std::vector<Cell>{"dog", 0.25, 0.5, 0.0}));
}

TEST(ConfusionMatrix, OfLabelsHasARowForEachLabel) {
  ConfusionMatrix metric{{.task = Task::multilabel,
                          .num_labels = 2,
                          .ignore_index = -1,
                          .class_names = {"wet", "cold"},
                          .as_values = true}};
  metric.update(integers({1, 1, 0, 1}, {2, 2}), integers({1, 0, 1, -1}, {2, 2}));
  const auto result = metric.compute();
  EXPECT_EQ(result.tables.at(0).columns,
            (std::vector<std::string>{"label", "tn", "fp", "fn", "tp"}));
  EXPECT_EQ(result.tables.at(0).rows.at(0).cells, (std::vector<Cell>{"wet", 0.0, 0.0, 1.0, 1.0}));
  EXPECT_EQ(result.tables.at(0).rows.at(1).cells, (std::vector<Cell>{"cold", 0.0, 1.0, 0.0, 0.0}));
  EXPECT_EQ(result.values.at(2), (std::pair{std::string{"wet/1/0"}, std::optional{1.0}}));
}

TEST(ConfusionMatrix, OfNothingHasNoRowsAndNoValues) {
  ConfusionMatrix metric{{.task = Task::binary, .as_values = true}};
  EXPECT_EQ(metric.state(), "");
  const auto result = metric.compute();
  EXPECT_TRUE(result.tables.at(0).rows.empty());
  ASSERT_EQ(result.values.size(), 4U);
  EXPECT_EQ(result.values[1].first, "0/1");
  EXPECT_FALSE(result.values[1].second.has_value());
}

TEST(ConfusionMatrix, GivesTheSameBitsForAnySplit) {
  const auto results = test::results_of_splits(
      9, [] { return animals(Normalize::all); },
      [](ConfusionMatrix& metric, int64_t i) {
        metric.update(integers({i % 3, (i * 5) % 3}), integers({(i / 2) % 3, i % 2}));
      });
  EXPECT_EQ(results.size(), 1U);
}

TEST(ConfusionMatrix, RefusesWhatDoesNotFit) {
  message_of(ErrorKind::usage, [] { ConfusionMatrix{{.num_classes = 1}}; });
  auto metric = animals();
  message_of(ErrorKind::data, [&] { metric.update(integers({0}), integers({3})); });
  message_of(ErrorKind::data, [&] { metric.merge("12345678"); });
  EXPECT_EQ(metric.state(), "");
}

}  // namespace
}  // namespace muster
