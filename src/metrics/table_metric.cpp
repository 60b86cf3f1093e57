#include <muster/base/check.h>
#include <muster/base/exact_sum.h>
#include <muster/base/text.h>
#include <muster/metrics/table_metric.h>
#include <muster/value/value.h>

#include <set>
#include <utility>

namespace muster {

namespace {

Value to_value(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return *text;
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return *number;
  }
  return {};
}

Cell to_cell(const Value& value) {
  if (value.is_string()) {
    return value.as_string();
  }
  if (value.is_double()) {
    return value.as_double();
  }
  check(value.is_null(), ErrorKind::data, "a cell of a table is a text or a number, not a {}",
        value.kind());
  return {};
}

}  // namespace

TableMetric::TableMetric(std::vector<TableColumn> columns) : columns_{std::move(columns)} {
  std::set<std::string_view> names{"index"};
  bool numbers = false;
  for (const auto& column : columns_) {
    check(names.insert(column.name).second, "a table has two columns called {}", column.name);
    const bool is_text = column.kind == TableColumn::Kind::text;
    check(!is_text || !numbers, "the text column {} stands behind a number; texts come first",
          column.name);
    numbers = numbers || !is_text;
  }
}

void TableMetric::update(int64_t index, std::vector<Cell> cells) {
  check(cells.size() == columns_.size(), "the row of sample {} has {} cells for {} columns", index,
        cells.size(), columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool is_text = columns_[i].kind == TableColumn::Kind::text;
    const bool fits = is_text ? !std::holds_alternative<double>(cells[i])
                              : !std::holds_alternative<std::string>(cells[i]);
    check(fits, "column {} holds {}, but the row of sample {} has {} there", columns_[i].name,
          is_text ? "text" : "numbers", index, is_text ? "a number" : "text");
    if (auto* text = std::get_if<std::string>(&cells[i])) {
      *text = valid_utf8(*text);  // a file's name may be any bytes; the table is a text
    }
  }
  check(rows_.try_emplace(index, std::move(cells)).second,
        "sample {} has a row already; update once a sample, with its global index", index);
}

std::string TableMetric::state() {
  if (rows_.empty()) {
    return {};
  }
  Value::List rows;
  for (const auto& [index, cells] : rows_) {
    Value::List row{index};
    for (const auto& cell : cells) {
      row.push_back(to_value(cell));
    }
    rows.emplace_back(std::move(row));
  }
  return to_bytes(rows);
}

void TableMetric::merge(std::string_view state) {
  const Value rows = from_bytes(state);
  for (const auto& row : rows.as_list()) {
    const auto& items = row.as_list();
    check(!items.empty(), ErrorKind::data, "a table's state has a row without index");
    std::vector<Cell> cells;
    for (size_t i = 1; i < items.size(); ++i) {
      cells.push_back(to_cell(items[i]));
    }
    update(items[0].as_int(), std::move(cells));
  }
}

MetricResult TableMetric::compute() {
  MetricResult result;
  auto& table = result.tables.emplace_back();
  for (size_t i = 0; i < columns_.size(); ++i) {
    table.columns.push_back(columns_[i].name);
    if (columns_[i].kind != TableColumn::Kind::mean) {
      continue;
    }
    ExactSum sum;
    int64_t count = 0;
    for (const auto& [index, cells] : rows_) {
      if (const auto* number = std::get_if<double>(&cells[i])) {
        sum.add(*number);
        ++count;
      }
    }
    result.values.emplace_back(columns_[i].name,
                               count > 0 ? std::optional{sum.mean(count)} : std::nullopt);
  }
  for (const auto& [index, cells] : rows_) {
    table.rows.push_back({index, cells});
  }
  return result;
}

void TableMetric::reset() { rows_.clear(); }

}  // namespace muster
