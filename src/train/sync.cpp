#include "sync_internal.h"

#include <muster/base/check.h>
#include <muster/base/format.h>
#include <muster/metrics/metric.h>
#include <muster/metrics/table_metric.h>
#include <muster/track/results.h>
#include <muster/value/value.h>

#include <algorithm>

namespace muster {

namespace {

using Values = std::vector<std::pair<std::string, std::optional<double>>>;

void add_value(Values& values, std::string name, std::optional<double> value) {
  const bool taken = std::any_of(values.begin(), values.end(),
                                 [&](const auto& item) { return item.first == name; });
  check(!taken, "two values of the epoch are called {}; give one of them another name", name);
  values.emplace_back(std::move(name), value);
}

/// A table that was logged row by row is a metric of its own: rows by index, and the mean of each
/// number column.
TableMetric table_metric(const Table& table) {
  std::vector<TableColumn> columns;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool is_text = std::any_of(table.rows.begin(), table.rows.end(), [i](const auto& row) {
      return std::holds_alternative<std::string>(row.cells[i]);
    });
    columns.push_back(
        {table.columns[i], is_text ? TableColumn::Kind::text : TableColumn::Kind::mean});
  }
  TableMetric metric{std::move(columns)};
  for (const auto& row : table.rows) {
    metric.update(row.index, row.cells);
  }
  return metric;
}

void add_result(EpochResult& result, const std::string& name, MetricResult computed) {
  for (auto& [value_name, value] : computed.values) {
    add_value(result.report.metrics, value_name.empty() ? name : format("{}/{}", name, value_name),
              value);
  }
  for (auto& table : computed.tables) {
    table.name = table.name.empty() ? name : format("{}-{}", name, table.name);
    check(
        is_table_name(table.name),
        "the table {} cannot be written, since its file bears its name; give the metric a name of "
        "the characters [A-Za-z0-9._-]",
        table.name);
    result.tables.push_back(std::move(table));
  }
}

/// Merges one metric's states of all ranks; false when no rank has updated it.
bool merge_metric(Metric& metric, const std::vector<Value>& ranks, size_t place) {
  metric.reset();
  bool updated = false;
  for (const auto& rank : ranks) {
    const std::string& state = rank.as_list().at(1).as_list().at(place).as_string();
    if (!state.empty()) {
      metric.merge(state);
      updated = true;
    }
  }
  return updated;
}

}  // namespace

EpochResult sync_epoch(Group& group, const Ledger& mine,
                       const std::vector<std::pair<std::string, Metric*>>& metrics,
                       int stop_signal) {
  Value::List states;
  for (const auto& [name, metric] : metrics) {
    states.emplace_back(metric->state());
  }
  Ledger all;
  std::vector<Value> ranks;
  if (group.size() == 1) {  // a row of a training is too frequent to be packed for nobody
    all = mine;
    ranks.emplace_back(Value::List{"", std::move(states)});
  } else {
    const std::string payload =
        to_bytes(Value::List{mine.state(), std::move(states), int64_t{stop_signal}});
    for (const auto& contribution : group.all_gather(payload)) {
      ranks.push_back(from_bytes(contribution.bytes));
      const size_t found = ranks.back().as_list().at(1).as_list().size();
      check(found == metrics.size(), ErrorKind::mismatch,
            "rank {} has {} registered metrics and rank {} has {}; register the same on every rank",
            group.rank(), metrics.size(), contribution.rank, found);
      all.merge(ranks.back().as_list().at(0).as_string());
      stop_signal = std::max(stop_signal, static_cast<int>(ranks.back().as_list().at(2).as_int()));
    }
  }
  EpochResult result;
  result.stop_signal = stop_signal;
  result.report.samples = all.samples();
  for (auto& [name, value] : all.values()) {
    add_value(result.report.metrics, name, value);
  }
  for (const auto& table : all.tables()) {
    add_result(result, table.name, table_metric(table).compute());
  }
  for (size_t i = 0; i < metrics.size(); ++i) {
    const auto& [name, metric] = metrics[i];
    if (merge_metric(*metric, ranks, i)) {
      add_result(result, name, metric->compute());
    }
  }
  for (auto& image : all.images()) {
    result.images.push_back(std::move(image.record));
  }
  result.texts = all.texts();
  return result;
}

void stamp(EpochResult& result, Stage stage, int64_t epoch, int64_t global_step) {
  result.report.stage = to_string(stage);
  result.report.epoch = epoch;
  result.report.step = global_step;
  for (auto& table : result.tables) {
    table.stage = result.report.stage;
  }
}

}  // namespace muster
