#include <muster/base/check.h>
#include <muster/metrics/confusion_matrix.h>

#include "src/metrics/labels_internal.h"
#include "src/metrics/state_internal.h"

#include <algorithm>

namespace muster {

namespace {

/// Names of rows and columns: classes, or no and yes.
std::string side_name(const ConfusionMatrixOptions& options, int64_t i) {
  return options.task == Task::multiclass ? class_name(options.class_names, i) : format("{}", i);
}

/// Divides each number by the sum over those that share its key.
template <typename Key>
void divide_by_sums(std::vector<double>& cells, size_t keys, const Key& key) {
  std::vector<double> sums(keys);
  for (size_t i = 0; i < cells.size(); ++i) {
    sums[key(i)] += cells[i];
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i] = sums[key(i)] > 0.0 ? cells[i] / sums[key(i)] : 0.0;
  }
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(ConfusionMatrixOptions options) : options_{std::move(options)} {
  check_classes(options_.task, options_.num_classes, options_.num_labels, options_.class_names);
  groups_ = options_.task == Task::multilabel ? options_.num_labels : 1;
  classes_ = options_.task == Task::multiclass ? options_.num_classes : 2;
  reset();
}

void ConfusionMatrix::update(const at::Tensor& preds, const at::Tensor& target) {
  const auto labels = labels_of(preds, target,
                                {.task = options_.task,
                                 .num_classes = options_.num_classes,
                                 .num_labels = options_.num_labels,
                                 .threshold = options_.threshold,
                                 .score_kind = options_.score_kind,
                                 .ignore_index = options_.ignore_index});
  labels.for_each([&](int64_t /*sample*/, int64_t group, int64_t predicted, int64_t actual) {
    ++counts_[static_cast<size_t>((group * classes_ + actual) * classes_ + predicted)];
  });
}

bool ConfusionMatrix::is_empty() const {
  return std::all_of(counts_.begin(), counts_.end(), [](int64_t count) { return count == 0; });
}

std::string ConfusionMatrix::state() {
  if (is_empty()) {
    return {};
  }
  StateWriter writer;
  for (const int64_t count : counts_) {
    writer.integer(count);
  }
  return writer.take();
}

void ConfusionMatrix::merge(std::string_view state) {
  StateReader reader{state};
  auto merged = counts_;
  for (auto& count : merged) {
    count += reader.integer();
  }
  reader.finish();
  counts_ = std::move(merged);
}

std::vector<double> ConfusionMatrix::normalized() const {
  std::vector<double> cells(counts_.begin(), counts_.end());
  const auto side = static_cast<size_t>(classes_);
  const auto groups = static_cast<size_t>(groups_);
  if (options_.normalize == Normalize::actual) {
    divide_by_sums(cells, groups * side, [=](size_t i) { return i / side; });
  } else if (options_.normalize == Normalize::predicted) {
    divide_by_sums(cells, groups * side,
                   [=](size_t i) { return i / (side * side) * side + i % side; });
  } else if (options_.normalize == Normalize::all) {
    divide_by_sums(cells, groups, [=](size_t i) { return i / (side * side); });
  }
  return cells;
}

MetricResult ConfusionMatrix::compute() {
  MetricResult result;
  const bool labels = options_.task == Task::multilabel;
  const auto cells = normalized();
  if (options_.as_values) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const auto group = at / (classes_ * classes_);
      result.values.emplace_back(
          format("{}{}/{}", labels ? class_name(options_.class_names, group) + "/" : "",
                 side_name(options_, at / classes_ % classes_), side_name(options_, at % classes_)),
          is_empty() ? std::nullopt : std::optional{cells[i]});
    }
  }
  auto& table = result.tables.emplace_back();
  if (labels) {
    table.columns = {"label", "tn", "fp", "fn", "tp"};
  } else {
    table.columns = {"actual"};
    for (int64_t i = 0; i < classes_; ++i) {
      table.columns.push_back(side_name(options_, i));
    }
  }
  const auto width = table.columns.size() - 1;
  for (size_t i = 0; !is_empty() && i < cells.size() / width; ++i) {
    const auto row = static_cast<int64_t>(i);
    std::vector<Cell> line{labels ? class_name(options_.class_names, row)
                                  : side_name(options_, row)};
    for (size_t column = 0; column < width; ++column) {
      line.emplace_back(cells[i * width + column]);
    }
    table.rows.push_back({row, std::move(line)});
  }
  return result;
}

void ConfusionMatrix::reset() {
  counts_.assign(static_cast<size_t>(groups_ * classes_ * classes_), 0);
}

}  // namespace muster
