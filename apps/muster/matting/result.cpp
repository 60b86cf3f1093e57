#include "result.h"

#include <muster/base/exact_sum.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace muster::app {

namespace {

using Rows = std::vector<const ImageRow*>;
using Region = std::function<const RegionRow*(const ImageRow&)>;

const RegionRow* unknown_of(const ImageRow& row) { return row.unknown ? &*row.unknown : nullptr; }
const RegionRow* all_of(const ImageRow& row) { return &row.all; }

RegionMean mean_of(const Rows& rows, const Region& region) {
  std::array<ExactSum, error_columns.size()> sums;
  RegionMean mean;
  for (const auto* row : rows) {
    const RegionRow* found = region(*row);
    if (found == nullptr || !found->values) {
      continue;
    }
    ++mean.images;
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i].add((*found->values).*error_columns[i].member);
    }
  }
  if (mean.images > 0) {
    mean.values.emplace();
    for (size_t i = 0; i < sums.size(); ++i) {
      (*mean.values).*error_columns[i].member = sums[i].mean(mean.images);
    }
  }
  return mean;
}

Means means_of(const Rows& rows, bool has_trimaps) {
  Means means{.all = mean_of(rows, all_of)};
  if (has_trimaps) {
    means.unknown = mean_of(rows, unknown_of);
  }
  return means;
}

}  // namespace

double badness(const ImageRow& row, bool has_trimaps) {
  const RegionRow* region = has_trimaps ? unknown_of(row) : &row.all;
  return region != nullptr && region->values ? region->values->sad : -1.0;
}

std::vector<size_t> MattingReport::worst_first() const {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return badness(rows[a].row, has_trimaps) > badness(rows[b].row, has_trimaps);
  });
  return order;
}

void compute_means(MattingReport& report) {
  Rows all;
  std::map<std::string, Rows> by_dataset;
  for (const auto& named : report.rows) {
    all.push_back(&named.row);
    by_dataset[named.dataset].push_back(&named.row);
  }
  report.mean = means_of(all, report.has_trimaps);
  report.datasets.clear();
  for (const auto& [name, rows] : by_dataset) {
    report.datasets[name] = means_of(rows, report.has_trimaps);
  }
}

}  // namespace muster::app
