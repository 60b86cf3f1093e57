#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/metric.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// What the four numbers of a box are, in pixels.
enum class BoxFormat {
  xyxy,    ///< left, top, right, bottom
  xywh,    ///< left, top, width, height
  cxcywh,  ///< centre, width, height
};

constexpr auto enum_names(BoxFormat) {
  return std::array{std::pair{"xyxy", BoxFormat::xyxy}, std::pair{"xywh", BoxFormat::xywh},
                    std::pair{"cxcywh", BoxFormat::cxcywh}};
}

/// Names are TorchMetrics'.
struct MeanAveragePrecisionOptions {
  BoxFormat box_format = BoxFormat::xyxy;  ///< of predictions and truth
  bool class_metrics = false;              ///< also values for each class
};

/// What was found in one picture.
struct DetectedBoxes {
  at::Tensor boxes;   ///< [n, 4], floating or integers
  at::Tensor scores;  ///< [n], floating; the higher the surer
  at::Tensor labels;  ///< [n], integers
};

/// What is in one picture.
struct TrueBoxes {
  at::Tensor boxes;      ///< [n, 4], floating or integers
  at::Tensor labels;     ///< [n], integers
  at::Tensor iscrowd{};  ///< [n], integers or bool: not 0 is a group of objects; undefined: none is
  at::Tensor area{};     ///< [n], square pixels; undefined: the boxes' own
};

/// COCO's mean average precision and recall of boxes: the numbers of pycocotools' COCOeval with
/// iouType "bbox" and its default parameters, by the same steps in double.
///
/// Values, by TorchMetrics' names: `map` (IoU 0.50:0.95), `map_50`, `map_75`, `map_small`,
/// `map_medium`, `map_large` (below 32^2, to 96^2, above), `mar_1`, `mar_10`, `mar_100` (recall
/// with so many detections of a class in a picture), `mar_small`, `mar_medium`, `mar_large`; with
/// `class_metrics` also `map_per_class/LABEL` and `mar_100_per_class/LABEL`. Classes without true
/// boxes of that size, crowds apart, are left out of a mean; where none is left there is no value
/// (COCOeval says -1).
///
/// Each picture is keyed by its global index, so that equal scores have the same order whatever the
/// order of updates. Boxes are matched in `update`; the state has 24 bytes for each detection.
class MeanAveragePrecision : public Metric {
 public:
  explicit MeanAveragePrecision(MeanAveragePrecisionOptions options = {}) : options_{options} {}

  /// Adds the picture with global index `index`; no boxes is [0, 4] or [0]. Any device. Error of
  /// kind `usage` for other shapes and dtypes and for a picture that was added before, of kind
  /// `data` for numbers that are not finite; all name the picture.
  void update(int64_t index, const DetectedBoxes& preds, const TrueBoxes& target);

  std::string state() override;
  /// Error of kind `usage` that names the picture when two ranks have it.
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override { pictures_.clear(); }

 private:
  void add(int64_t index, std::string_view matches);

  MeanAveragePrecisionOptions options_;
  std::map<int64_t, std::string> pictures_;  // packed matches
};

}  // namespace muster
