#pragma once

#include "src/metrics/state_internal.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace muster {

/// COCO's parameters.
constexpr size_t box_thresholds = 10;  ///< of intersection over union: 0.50, 0.55, ..., 0.95
constexpr size_t box_areas = 4;        ///< all, small, medium, large
constexpr size_t most_detections = 100;

struct Box {
  double x = 0.0;  ///< left
  double y = 0.0;  ///< top
  double width = 0.0;
  double height = 0.0;
  int64_t label = 0;
  double score = 0.0;  ///< of a detection
  bool is_crowd = false;
  double area = 0.0;
};

/// What became of a detection, a bit for each area and threshold.
struct DetectionMatch {
  double score = 0.0;
  int64_t matched = 0;  ///< it has a true box
  int64_t ignored = 0;  ///< it counts neither as right nor as wrong

  [[nodiscard]] static int64_t bit(size_t area, size_t threshold) {
    return int64_t{1} << (area * box_thresholds + threshold);
  }
};

/// The detections of one class in one picture, by falling score, at most `most_detections`.
struct ClassMatches {
  int64_t label = 0;
  std::array<int64_t, box_areas> positives{};  ///< true boxes of each size that are to be found
  std::vector<DetectionMatch> detections{};

  void write(StateWriter& writer) const;
  static ClassMatches read(StateReader& reader);
};

/// Matches a picture's detections with its true boxes, class by class, by rising label.
std::vector<ClassMatches> match_boxes(std::span<const Box> detected, std::span<const Box> truth);

}  // namespace muster
