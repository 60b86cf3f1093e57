#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/classification.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// What the counts of a confusion matrix are divided by.
enum class Normalize {
  none,       ///< nothing
  actual,     ///< the row's sum: all that are of the class (TorchMetrics' "true")
  predicted,  ///< the column's sum: all that were said to be of the class ("pred")
  all,        ///< the matrix's sum
};

constexpr auto enum_names(Normalize) {
  return std::array{std::pair{"none", Normalize::none}, std::pair{"actual", Normalize::actual},
                    std::pair{"predicted", Normalize::predicted}, std::pair{"all", Normalize::all}};
}

/// Names are TorchMetrics'.
struct ConfusionMatrixOptions {
  Task task = Task::multiclass;              ///< what a sample is
  int64_t num_classes = 0;                   ///< of multiclass; at least 2
  int64_t num_labels = 0;                    ///< of multilabel; at least 1
  double threshold = 0.5;                    ///< a binary or multilabel score above it is a yes
  ScoreKind score_kind = ScoreKind::detect;  ///< what binary and multilabel scores are
  std::optional<int64_t> ignore_index{};     ///< elements whose target is this are left out
  Normalize normalize = Normalize::none;     ///< 0 / 0 is 0
  std::vector<std::string> class_names{};    ///< of classes or labels; empty: "0", "1", ...
  bool as_values = false;                    ///< each cell also as a value, "ACTUAL/PREDICTED"
};

/// How many elements of each class were said to be of each class, in whole numbers: TorchMetrics
/// 1.9's ConfusionMatrix. For multilabel a matrix of no and yes for each label.
///
/// Its table, named "", has a row for each true class (text column `actual`, then a number column
/// for each predicted class); for multilabel a row for each label (`label`, then tn, fp, fn, tp).
/// The table's index is the number of the row. Without elements it has no rows, and values are
/// absent.
class ConfusionMatrix : public Metric {
 public:
  /// Error of kind `usage` for a wrong number of classes or names.
  explicit ConfusionMatrix(ConfusionMatrixOptions options);

  /// As StatScores::update.
  void update(const at::Tensor& preds, const at::Tensor& target);

  /// [groups, actual, predicted], row-major: one group, or one for each label of multilabel.
  [[nodiscard]] const std::vector<int64_t>& counts() const { return counts_; }

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 private:
  [[nodiscard]] std::vector<double> normalized() const;
  [[nodiscard]] bool is_empty() const;

  ConfusionMatrixOptions options_;
  int64_t groups_ = 1;
  int64_t classes_ = 2;
  std::vector<int64_t> counts_;
};

}  // namespace muster
