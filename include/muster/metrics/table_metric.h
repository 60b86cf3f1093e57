#pragma once

#include <muster/base/record.h>
#include <muster/metrics/metric.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A column of a per-sample table.
struct TableColumn {
  enum class Kind {
    text,    ///< names and the like
    mean,    ///< a number whose mean is a value of the metric
    number,  ///< a number that only stands in the table
  };
  std::string name{};
  Kind kind = Kind::mean;
};

/// One row a sample, keyed by its global index. Its values are, for each column of kind `mean`, the
/// mean over the rows that have a value there: exact, rounded once. Its table, named "", has the
/// rows by rising index.
class TableMetric : public Metric {
 public:
  /// Text columns stand before numbers. Error of kind `usage` when they do not, and for names that
  /// are not unique.
  explicit TableMetric(std::vector<TableColumn> columns);

  /// A cell for each column, of its kind or without value. Error of kind `usage` that names the
  /// index when it has a row already, or when the cells do not fit the columns.
  void update(int64_t index, std::vector<Cell> cells);

  std::string state() override;
  /// Error of kind `usage` that names the index when two ranks have a row for it.
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 private:
  std::vector<TableColumn> columns_;
  std::map<int64_t, std::vector<Cell>> rows_;
};

}  // namespace muster
