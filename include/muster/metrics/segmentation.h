#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/classification.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// What a score of regions is computed of.
enum class AggregationLevel {
  samplewise,  ///< each sample's pixels; the scores are averaged
  global,      ///< the pixels of all samples together
};

constexpr auto enum_names(AggregationLevel) {
  return std::array{std::pair{"samplewise", AggregationLevel::samplewise},
                    std::pair{"global", AggregationLevel::global}};
}

/// Pixels of one class.
struct RegionCounts {
  int64_t intersection = 0;  ///< that are of it and were said to be
  int64_t predicted = 0;     ///< that were said to be
  int64_t actual = 0;        ///< that are
};

/// Names are TorchMetrics'.
struct SegmentationOptions {
  int64_t num_classes = 0;                                            ///< at least 2
  AggregationLevel aggregation_level = AggregationLevel::samplewise;  ///< as in TorchMetrics
  bool include_background = true;          ///< false: class 0 is left out
  std::optional<int64_t> ignore_index{};   ///< such true pixels and that class are left out
  bool per_class = false;                  ///< MeanIoU: also a value for each class
  Average average = Average::macro;        ///< DiceScore: over the classes
  std::vector<std::string> class_names{};  ///< of values of classes; empty: "0", "1", ...
};

/// What MeanIoU and DiceScore share: whole counts of pixels for each class of a sample, scores in
/// double from them, and the exact mean of these. Their value is named "", those of classes as the
/// class; no value where no pixel counts.
class SegmentationMetric : public Metric {
 public:
  /// `target`: classes [N, ...], integers. `preds`: classes of the same shape, or floating scores
  /// [N, num_classes, ...], of which the highest counts. Any device. Error of kind `usage` for
  /// other shapes and dtypes, of kind `data` for a class out of range.
  void update(const at::Tensor& preds, const at::Tensor& target);

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 protected:
  using Scores = std::vector<std::optional<double>>;
  enum class Gives { mean, classes, both };

  /// Error of kind `usage` for a wrong number of classes or names.
  SegmentationMetric(SegmentationOptions options, Gives gives);

  /// One score, or one for each class. Classes that are left out have no pixels.
  [[nodiscard]] virtual Scores scores_of(const std::vector<RegionCounts>& regions) const = 0;

  [[nodiscard]] const SegmentationOptions& options() const { return options_; }

 private:
  [[nodiscard]] bool is_left_out(int64_t class_number) const;
  [[nodiscard]] bool is_global() const;
  void add_scores(std::vector<Mean>& means, const std::vector<RegionCounts>& regions) const;

  SegmentationOptions options_;
  Gives gives_;
  std::vector<Mean> means_;          // samplewise: of each score
  std::vector<RegionCounts> total_;  // global
};

/// Intersection over union of the predicted and the true pixels of each class. A class that is in
/// neither has none, and is left out of means.
///
/// samplewise: the mean over all classes of all samples, and for each class over samples, as
/// TorchMetrics 1.9's segmentation.MeanIoU (which says -1 for a class that never comes). global:
/// the data set's counts for each class, and the mean over classes, the mIoU of benchmarks, as
/// TorchMetrics' MulticlassJaccardIndex.
class MeanIoU : public SegmentationMetric {
 public:
  explicit MeanIoU(const SegmentationOptions& options);

 protected:
  [[nodiscard]] Scores scores_of(const std::vector<RegionCounts>& regions) const override;
};

/// 2 * intersection / (predicted + true pixels) of each class, averaged over classes by `average`,
/// then (samplewise) over samples, as TorchMetrics 1.9's segmentation.DiceScore. Classes and
/// samples without any pixel have none, and are left out. With Average::weighted a sample with
/// predicted but without true pixels scores 0.
class DiceScore : public SegmentationMetric {
 public:
  explicit DiceScore(const SegmentationOptions& options);

 protected:
  [[nodiscard]] Scores scores_of(const std::vector<RegionCounts>& regions) const override;
};

}  // namespace muster
