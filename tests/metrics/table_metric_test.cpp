#include <muster/base/error.h>
#include <muster/metrics/table_metric.h>

#include "tests/metrics/ranks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

using Kind = TableColumn::Kind;

TableMetric scores() {
  return TableMetric{{{"name", Kind::text}, {"n", Kind::number}, {"score", Kind::mean}}};
}

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(TableMetric, AveragesOverTheRowsThatHaveAValue) {
  auto metric = scores();
  metric.update(2, {"c", 1.0, 4.0});
  metric.update(0, {"a", 2.0, 1.0});
  metric.update(1, {"b", 3.0, {}});
  const auto result = metric.compute();
  ASSERT_EQ(result.values.size(), 1U);
  EXPECT_EQ(result.values[0].first, "score");
  EXPECT_EQ(result.values[0].second, 2.5);
}

TEST(TableMetric, KeepsTextsThatAreNoUtf8ReadableForOthers) {
  auto metric = scores();
  metric.update(0, {"\xff name", {}, 1.0});
  EXPECT_EQ(metric.compute().tables.at(0).rows.at(0).cells.at(0), Cell{"\xef\xbf\xbd name"});
}

TEST(TableMetric, HasItsRowsByIndexWhateverTheOrderOfUpdates) {
  auto metric = scores();
  for (const int64_t index : {9, 3, 7}) {
    metric.update(index, {std::to_string(index), {}, static_cast<double>(index)});
  }
  const auto table = metric.compute().tables.at(0);
  EXPECT_EQ(table.name, "");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"name", "n", "score"}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].index, 3);
  EXPECT_EQ(table.rows[1].index, 7);
  EXPECT_EQ(table.rows[2].index, 9);
  EXPECT_EQ(table.rows[0].cells, (std::vector<Cell>{"3", {}, 3.0}));
}

TEST(TableMetric, GivesTheSameBytesForEveryWorldSize) {
  std::set<std::string> results;
  for (int world = 1; world <= 5; ++world) {
    std::vector<TableMetric> ranks(static_cast<size_t>(world), scores());
    for (int index = 0; index < 7; ++index) {
      std::vector<Cell> cells{"image", 1.0, 0.1 * index};
      cells.resize(index == 4 ? 2 : 3);
      cells.resize(3);
      ranks[static_cast<size_t>(index % world)].update(index, std::move(cells));
    }
    test::sync(ranks);
    for (auto& rank : ranks) {
      results.insert(test::fingerprint(rank.compute()));
    }
  }
  EXPECT_EQ(results.size(), 1U);
}

TEST(TableMetric, WithoutAnyValueInAColumnHasNoMean) {
  auto metric = scores();
  metric.update(0, {"a", 0.0, {}});
  EXPECT_FALSE(metric.compute().values.at(0).second.has_value());
}

TEST(TableMetric, RefusesASecondRowOfASampleByItsIndex) {
  auto metric = scores();
  metric.update(41, {"a", 1.0, 1.0});
  EXPECT_NE(message_of([&] { metric.update(41, {"a", 1.0, 1.0}); }).find("41"), std::string::npos);
  auto other = scores();
  other.update(41, {"b", 1.0, 1.0});
  const std::string state = other.state();
  EXPECT_NE(message_of([&] { metric.merge(state); }).find("41"), std::string::npos);
}

TEST(TableMetric, RefusesCellsThatDoNotFitItsColumns) {
  auto metric = scores();
  EXPECT_NE(message_of([&] { metric.update(5, {"a", 1.0}); }).find('5'), std::string::npos);
  EXPECT_NE(message_of([&] { metric.update(5, {1.0, 1.0, 1.0}); }).find("name"), std::string::npos);
  EXPECT_NE(message_of([&] {
              metric.update(5, {"a", 1.0, "x"});
            }).find("score"),
            std::string::npos);
  EXPECT_EQ(metric.state(), "");
}

TEST(TableMetric, RefusesTextBehindNumbersAndNamesTwice) {
  message_of([] { TableMetric{{{"score", Kind::mean}, {"name", Kind::text}}}; });
  message_of([] { TableMetric{{{"score", Kind::mean}, {"score", Kind::number}}}; });
  message_of([] { TableMetric{{{"index", Kind::number}}}; });
}

}  // namespace
}  // namespace muster
