#include "src/track/compare_runs_internal.h"
#include "src/track/csv_text_internal.h"
#include "src/track/report_data_internal.h"

#include <muster/base/check.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace muster::track {

namespace {

using Row = std::vector<std::string>;

std::vector<Row> rows_of(std::string_view text) {
  return parse_csv(text, std::numeric_limits<size_t>::max()).rows;
}

/// "tables/validate-val.csv, sample 3 (icons / a)": the texts of the row say which sample it is.
std::string row_label(const std::string& table, const Row& row) {
  std::string texts;
  for (size_t column = 1; column < row.size(); ++column) {
    if (!row[column].empty() && !cell_number(row[column])) {
      texts += (texts.empty() ? "" : " / ") + row[column];
    }
  }
  return format("{}, sample {}{}", table, row.front(), texts.empty() ? "" : " (" + texts + ")");
}

std::string cell_text(const Row& row, size_t column) {
  if (column >= row.size()) {
    return missing;
  }
  return row[column].empty() ? "empty" : row[column];
}

/// Compares by sample, row by row and cell by cell.
class TableComparison {
 public:
  TableComparison(const std::string& name, std::string_view first, std::string_view second)
      : name_{name}, left_{rows_of(first)}, right_{rows_of(second)} {}

  FirstDifference compare() {
    if (left_.empty() || right_.empty()) {
      return std::move(out_);
    }
    compare_columns();
    if (out_.any()) {  // cells of other columns would all differ
      return std::move(out_);
    }
    const auto in_left = by_sample(left_);
    const auto in_right = by_sample(right_);
    for (size_t i = 1; i < left_.size(); ++i) {
      const auto other = in_right.find(left_[i].front());
      if (other == in_right.end()) {
        out_.add(row_label(name_, left_[i]), there, missing);
      } else {
        compare_rows(left_[i], *other->second);
      }
    }
    for (size_t i = 1; i < right_.size(); ++i) {
      if (!in_left.contains(right_[i].front())) {
        out_.add(row_label(name_, right_[i]), missing, there);
      }
    }
    return std::move(out_);
  }

 private:
  static std::unordered_map<std::string_view, const Row*> by_sample(const std::vector<Row>& rows) {
    std::unordered_map<std::string_view, const Row*> map;
    for (size_t i = 1; i < rows.size(); ++i) {
      map.try_emplace(rows[i].front(), &rows[i]);
    }
    return map;
  }

  void compare_columns() {
    const Row& left = left_.front();
    const Row& right = right_.front();
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      if (i >= left.size() || i >= right.size() || left[i] != right[i]) {
        out_.add(format("{}, column {}", name_, i + 1), cell_text(left, i), cell_text(right, i));
      }
    }
  }

  void compare_rows(const Row& left, const Row& right) {
    const Row& columns = left_.front();
    for (size_t i = 1; i < std::max(left.size(), right.size()); ++i) {
      const std::string one = cell_text(left, i);
      const std::string two = cell_text(right, i);
      if (one != two) {
        out_.add(format("{}, column {}", row_label(name_, left),
                        i < columns.size() ? columns[i] : format("{}", i + 1)),
                 one, two);
      }
    }
  }

  const std::string& name_;
  std::vector<Row> left_;
  std::vector<Row> right_;
  FirstDifference out_;
};

}  // namespace

RunDifference compare_tables(const std::string& name, std::string_view first,
                             std::string_view second) {
  FirstDifference found = TableComparison{name, first, second}.compare();
  if (!found.any()) {  // such as the order of rows, or how a cell is quoted
    return differing_line(name, first, second);
  }
  std::vector<RunDifference> one;
  found.take_into(one);
  return one.front();
}

}  // namespace muster::track
