#include <muster/base/check.h>
#include <muster/metrics/mean_average_precision.h>
#include <muster/value/tensor.h>
#include <muster/value/value.h>

#include "src/metrics/box_matching_internal.h"
#include "src/metrics/host_values_internal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace muster {

namespace {

constexpr size_t recall_points = 101;  // 0, 0.01, ..., 1

bool is_whole(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

/// Checks a picture's tensors and reads their numbers.
class PictureReader {
 public:
  PictureReader(int64_t index, const char* what, BoxFormat format)
      : index_{index}, what_{what}, format_{format} {}

  [[nodiscard]] std::vector<Box> boxes(const at::Tensor& tensor, const at::Tensor& labels) const {
    check(tensor.defined() && ((tensor.dim() == 2 && tensor.size(1) == 4) ||
                               (tensor.dim() == 1 && tensor.numel() == 0)),
          "picture {}: {} boxes must be [n, 4], not {}", index_, what_, describe(tensor));
    const auto numbers = finite(tensor, "boxes");
    std::vector<Box> boxes(numbers.size() / 4);
    const auto classes = integers(labels, "labels", boxes.size());
    for (size_t i = 0; i < boxes.size(); ++i) {
      boxes[i] = box(&numbers[4 * i]);
      boxes[i].label = classes[i];
    }
    return boxes;
  }

  [[nodiscard]] std::vector<double> numbers(const at::Tensor& tensor, const char* name,
                                            size_t count) const {
    check_size(tensor, name, count);
    return finite(tensor, name);
  }

  [[nodiscard]] std::vector<int64_t> integers(const at::Tensor& tensor, const char* name,
                                              size_t count) const {
    check_size(tensor, name, count);
    check(is_whole(tensor) || count == 0, "picture {}: {} {} must be integers, not {}", index_,
          what_, name, describe(tensor));
    return host_integers(tensor);
  }

 private:
  void check_size(const at::Tensor& tensor, const char* name, size_t count) const {
    check(tensor.defined() && tensor.dim() == 1 && tensor.size(0) == static_cast<int64_t>(count),
          "picture {}: {} {} must be [{}], one for each box, not {}", index_, what_, name, count,
          describe(tensor));
  }

  [[nodiscard]] std::vector<double> finite(const at::Tensor& tensor, const char* name) const {
    auto values = host_doubles(tensor);
    for (const double value : values) {
      check(std::isfinite(value), ErrorKind::data,
            "picture {}: {} {} hold {}, which nothing can be compared with", index_, what_, name,
            value);
    }
    return values;
  }

  [[nodiscard]] Box box(const double* of) const {
    Box box{.x = of[0], .y = of[1], .width = of[2], .height = of[3]};
    if (format_ == BoxFormat::xyxy) {
      box.width = of[2] - of[0];
      box.height = of[3] - of[1];
    } else if (format_ == BoxFormat::cxcywh) {
      box.x = of[0] - of[2] / 2.0;
      box.y = of[1] - of[3] / 2.0;
    }
    box.area = box.width * box.height;
    return box;
  }

  int64_t index_;
  const char* what_;
  BoxFormat format_;
};

/// A detection among those of its class in all pictures.
struct Detection {
  DetectionMatch match{};
  size_t place = 0;  ///< among those of its picture, by score
};

/// One class in all pictures.
struct ClassRecord {
  std::array<int64_t, box_areas> positives{};
  std::vector<Detection> detections{};
};

/// At one threshold.
struct Curve {
  double recall = 0.0;
  std::array<double, recall_points> precision{};
};

/// `detections` by falling score; of each picture the first `limit` count.
Curve curve_of(const ClassRecord& record, size_t area, size_t threshold, size_t limit) {
  const int64_t bit = DetectionMatch::bit(area, threshold);
  const auto positives = static_cast<double>(record.positives[area]);
  std::vector<double> recall;
  std::vector<double> precision;
  double right = 0.0;
  double wrong = 0.0;
  for (const auto& [match, place] : record.detections) {
    if (place >= limit || (match.ignored & bit) != 0) {
      continue;
    }
    ((match.matched & bit) != 0 ? right : wrong) += 1.0;
    recall.push_back(right / positives);
    precision.push_back(right / (wrong + right + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precision.size(); i-- > 1;) {
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
  Curve curve{.recall = recall.empty() ? 0.0 : recall.back()};
  for (size_t i = 0; i < recall_points; ++i) {
    const double wanted = i + 1 == recall_points ? 1.0 : static_cast<double>(i) * 0.01;
    const auto at = std::lower_bound(recall.begin(), recall.end(), wanted) - recall.begin();
    curve.precision[i] = at < std::ssize(precision) ? precision[static_cast<size_t>(at)] : 0.0;
  }
  return curve;
}

/// Means for one range of areas and one number of detections.
struct Summary {
  std::array<ExactMean, box_thresholds> precision{};
  ExactMean recall{};

  void add(const ClassRecord& record, size_t area, size_t limit) {
    if (record.positives[area] == 0) {
      return;
    }
    for (size_t t = 0; t < box_thresholds; ++t) {
      const auto curve = curve_of(record, area, t, limit);
      recall.add(curve.recall);
      for (const double value : curve.precision) {
        precision[t].add(value);
      }
    }
  }

  [[nodiscard]] std::optional<double> mean_precision() const {
    ExactMean all;
    for (const auto& mean : precision) {
      all.merge(mean);
    }
    return all.value();
  }
};

/// By label.
std::map<int64_t, ClassRecord> records_of(const std::map<int64_t, std::string>& pictures) {
  std::map<int64_t, ClassRecord> records;
  for (const auto& [index, bytes] : pictures) {
    for (StateReader reader{bytes}; !reader.at_end();) {
      const auto matches = ClassMatches::read(reader);
      auto& record = records[matches.label];
      for (size_t area = 0; area < box_areas; ++area) {
        record.positives[area] += matches.positives[area];
      }
      for (size_t i = 0; i < matches.detections.size(); ++i) {
        record.detections.push_back({matches.detections[i], i});
      }
    }
  }
  for (auto& [label, record] : records) {
    std::stable_sort(
        record.detections.begin(), record.detections.end(),
        [](const Detection& a, const Detection& b) { return a.match.score > b.match.score; });
  }
  return records;
}

}  // namespace

void MeanAveragePrecision::update(int64_t index, const DetectedBoxes& preds,
                                  const TrueBoxes& target) {
  const PictureReader said{index, "predicted", options_.box_format};
  auto detected = said.boxes(preds.boxes, preds.labels);
  const auto scores = said.numbers(preds.scores, "scores", detected.size());
  for (size_t i = 0; i < detected.size(); ++i) {
    detected[i].score = scores[i];
  }
  const PictureReader known{index, "true", options_.box_format};
  auto truth = known.boxes(target.boxes, target.labels);
  if (target.iscrowd.defined()) {
    const auto crowds = known.integers(target.iscrowd, "iscrowd", truth.size());
    for (size_t i = 0; i < truth.size(); ++i) {
      truth[i].is_crowd = crowds[i] != 0;
    }
  }
  if (target.area.defined()) {
    const auto areas = known.numbers(target.area, "area", truth.size());
    for (size_t i = 0; i < truth.size(); ++i) {
      truth[i].area = areas[i];
    }
  }
  StateWriter writer;
  for (const auto& matches : match_boxes(detected, truth)) {
    matches.write(writer);
  }
  add(index, writer.take());
}

void MeanAveragePrecision::add(int64_t index, std::string_view matches) {
  check(pictures_.try_emplace(index, matches).second,
        "picture {} was added before; update once a picture, with its global index", index);
}

std::string MeanAveragePrecision::state() {
  Value::List list;
  for (const auto& [index, matches] : pictures_) {
    list.emplace_back(index);
    list.emplace_back(matches);
  }
  return list.empty() ? "" : to_bytes(list);
}

void MeanAveragePrecision::merge(std::string_view state) {
  const auto list = from_bytes(state).as_list();
  check(list.size() % 2 == 0, ErrorKind::data, "a metric's state has {} parts, not pairs",
        list.size());
  for (size_t i = 0; i < list.size(); i += 2) {
    add(list[i].as_int(), list[i + 1].as_string());
  }
}

MetricResult MeanAveragePrecision::compute() {
  const auto records = records_of(pictures_);
  std::array<Summary, box_areas> by_area;
  Summary first;
  Summary first_ten;
  MetricResult each;
  for (const auto& [label, record] : records) {
    for (size_t area = 0; area < box_areas; ++area) {
      by_area[area].add(record, area, most_detections);
    }
    first.add(record, 0, 1);
    first_ten.add(record, 0, 10);
    Summary own;
    own.add(record, 0, most_detections);
    each.values.emplace_back(format("map_per_class/{}", label), own.mean_precision());
    each.values.emplace_back(format("mar_100_per_class/{}", label), own.recall.value());
  }
  const auto& all = by_area[0];
  MetricResult result{.values = {{"map", all.mean_precision()},
                                 {"map_50", all.precision[0].value()},
                                 {"map_75", all.precision[5].value()},
                                 {"map_small", by_area[1].mean_precision()},
                                 {"map_medium", by_area[2].mean_precision()},
                                 {"map_large", by_area[3].mean_precision()},
                                 {"mar_1", first.recall.value()},
                                 {"mar_10", first_ten.recall.value()},
                                 {"mar_100", all.recall.value()},
                                 {"mar_small", by_area[1].recall.value()},
                                 {"mar_medium", by_area[2].recall.value()},
                                 {"mar_large", by_area[3].recall.value()}}};
  if (options_.class_metrics) {
    result.values.insert(result.values.end(), each.values.begin(), each.values.end());
  }
  return result;
}

}  // namespace muster
