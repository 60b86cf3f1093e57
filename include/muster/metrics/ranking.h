#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/classification.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Names are TorchMetrics'.
struct RankingOptions {
  Task task = Task::binary;                  ///< what a sample is
  int64_t num_classes = 0;                   ///< of multiclass; at least 2
  int64_t num_labels = 0;                    ///< of multilabel; at least 1
  Average average = Average::macro;          ///< of multiclass (not micro) and multilabel
  ScoreKind score_kind = ScoreKind::detect;  ///< what scores are
  std::optional<int64_t> ignore_index{};     ///< elements whose target is this are left out
  std::vector<std::string> class_names{};    ///< for Average::none; empty: "0", "1", ...
};

/// What AUROC and AveragePrecision share: all scores of each class as doubles, apart for the
/// elements that are of the class and those that are not. `compute` sorts them, and equal scores
/// are one threshold, so nothing depends on their order: TorchMetrics 1.9 with `thresholds` None,
/// for predictions of dtype double. The state takes 8 bytes for each score.
///
/// Its value is named "", or with Average::none one for each class is named as the class. No value
/// without elements. A class without a value is left out of a mean. NaN where a score is NaN.
class RankingMetric : public Metric {
 public:
  /// `preds`: floating scores; binary of the target's shape, multiclass [N, num_classes, ...] for
  /// a target [N, ...], multilabel [N, num_labels, ...] as the target. `target`: integers or bool.
  /// Any device. Error of kind `usage` for other shapes and dtypes, of kind `data` for a class out
  /// of range.
  void update(const at::Tensor& preds, const at::Tensor& target);

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 protected:
  /// Scores of one class: of elements that are of it, and that are not.
  struct Scores {
    std::vector<double> positive{};
    std::vector<double> negative{};
  };
  /// Elements at one threshold or above.
  struct Point {
    int64_t tp = 0;
    int64_t fp = 0;
  };
  /// The value of a class with points at its thresholds, from the highest score to the lowest.
  using Area = std::optional<double> (*)(std::span<const Point> points, Task task);

  RankingMetric(RankingOptions options, Area area);

 private:
  [[nodiscard]] std::optional<double> value_of(Scores scores) const;

  RankingOptions options_;
  Area area_;
  std::vector<Scores> classes_;
};

/// Area under the curve of true over false positive rate, by trapezoids; areas are whole numbers
/// until the last division. 0 for a class without elements of it or without others.
class AUROC : public RankingMetric {
 public:
  explicit AUROC(RankingOptions options = {});
};

/// Sum over thresholds of (recall - recall before) * precision. Without elements of it a
/// multiclass class has no value (TorchMetrics: NaN, or 0 where all elements are of class 0),
/// binary and a label have 0.
class AveragePrecision : public RankingMetric {
 public:
  explicit AveragePrecision(RankingOptions options = {});
};

}  // namespace muster
