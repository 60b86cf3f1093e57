#include "src/metrics/box_matching_internal.h"

#include <muster/base/check.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace muster {

namespace {

struct Range {
  double low = 0.0;
  double high = 0.0;

  [[nodiscard]] bool has(double area) const { return !(area < low || area > high); }
};

constexpr std::array<Range, box_areas> area_ranges{
    {{0.0, 1e10}, {0.0, 1024.0}, {1024.0, 9216.0}, {9216.0, 1e10}}};

/// As numpy.linspace(0.5, 0.95, 10) rounds them.
double threshold_of(size_t i) {
  constexpr double step = (0.95 - 0.5) / 9.0;
  return i + 1 == box_thresholds ? 0.95 : static_cast<double>(i) * step + 0.5;
}

/// Intersection over union; over the detection's own area where the truth is a crowd.
double overlap(const Box& detected, const Box& truth) {
  const double width = std::fmin(detected.width + detected.x, truth.width + truth.x) -
                       std::fmax(detected.x, truth.x);
  const double height = std::fmin(detected.height + detected.y, truth.height + truth.y) -
                        std::fmax(detected.y, truth.y);
  if (width <= 0.0 || height <= 0.0) {
    return 0.0;
  }
  const double common = width * height;
  const double own = detected.width * detected.height;
  return common / (truth.is_crowd ? own : own + truth.width * truth.height - common);
}

/// One class of one picture.
struct Boxes {
  std::vector<const Box*> detected{};
  std::vector<const Box*> truth{};
};

/// The matches within one range of areas.
class Matcher {
 public:
  Matcher(const Boxes& boxes, const std::vector<double>& overlaps, const Range& range)
      : boxes_{boxes}, overlaps_{overlaps} {
    for (size_t i = 0; i < boxes.truth.size(); ++i) {
      order_.push_back(i);
      ignored_.push_back(boxes.truth[i]->is_crowd || !range.has(boxes.truth[i]->area));
    }
    std::stable_partition(order_.begin(), order_.end(), [&](size_t i) { return !ignored_[i]; });
  }

  [[nodiscard]] int64_t positives() const {
    return std::count(ignored_.begin(), ignored_.end(), false);
  }
  [[nodiscard]] bool is_ignored(size_t truth) const { return ignored_[truth]; }

  void start_threshold() { taken_.assign(boxes_.truth.size(), false); }

  /// Takes the best true box that is free for the detection: the last of equal ones, and one to be
  /// ignored only where no other reaches the threshold.
  std::optional<size_t> take(size_t detection, double threshold) {
    double best = std::min(threshold, 1.0 - 1e-10);
    std::optional<size_t> found;
    for (const size_t i : order_) {
      if (taken_[i] && !boxes_.truth[i]->is_crowd) {
        continue;
      }
      if (found && !ignored_[*found] && ignored_[i]) {
        break;
      }
      const double overlap = overlaps_[detection * boxes_.truth.size() + i];
      if (overlap >= best) {
        best = overlap;
        found = i;
      }
    }
    if (found) {
      taken_[*found] = true;
    }
    return found;
  }

 private:
  const Boxes& boxes_;
  const std::vector<double>& overlaps_;
  std::vector<size_t> order_;  // those to be ignored last
  std::vector<bool> ignored_;
  std::vector<bool> taken_;
};

ClassMatches match_class(int64_t label, Boxes& boxes) {
  auto& detected = boxes.detected;
  std::stable_sort(detected.begin(), detected.end(),
                   [](const Box* a, const Box* b) { return a->score > b->score; });
  detected.resize(std::min(detected.size(), most_detections));
  ClassMatches matches{.label = label};
  std::vector<double> overlaps;
  for (const auto* box : detected) {
    matches.detections.push_back({.score = box->score});
    for (const auto* truth : boxes.truth) {
      overlaps.push_back(overlap(*box, *truth));
    }
  }
  for (size_t area = 0; area < box_areas; ++area) {
    Matcher matcher{boxes, overlaps, area_ranges[area]};
    matches.positives[area] = matcher.positives();
    for (size_t t = 0; t < box_thresholds; ++t) {
      matcher.start_threshold();
      const int64_t bit = DetectionMatch::bit(area, t);
      for (size_t d = 0; d < detected.size(); ++d) {
        const auto truth = matcher.take(d, threshold_of(t));
        const bool ignored =
            truth ? matcher.is_ignored(*truth) : !area_ranges[area].has(detected[d]->area);
        matches.detections[d].matched |= truth ? bit : 0;
        matches.detections[d].ignored |= ignored ? bit : 0;
      }
    }
  }
  return matches;
}

}  // namespace

void ClassMatches::write(StateWriter& writer) const {
  writer.integer(label);
  for (const int64_t count : positives) {
    writer.integer(count);
  }
  writer.integer(static_cast<int64_t>(detections.size()));
  for (const auto& detection : detections) {
    writer.number(detection.score);
    writer.integer(detection.matched);
    writer.integer(detection.ignored);
  }
}

ClassMatches ClassMatches::read(StateReader& reader) {
  ClassMatches matches{.label = reader.integer()};
  for (int64_t& count : matches.positives) {
    count = reader.integer();
  }
  const int64_t detections = reader.integer();
  check(detections >= 0 && detections <= static_cast<int64_t>(most_detections), ErrorKind::data,
        "a metric's state has {} detections of a class in a picture", detections);
  for (int64_t i = 0; i < detections; ++i) {
    const double score = reader.number();
    const int64_t matched = reader.integer();
    matches.detections.push_back({score, matched, reader.integer()});
  }
  return matches;
}

std::vector<ClassMatches> match_boxes(std::span<const Box> detected, std::span<const Box> truth) {
  std::map<int64_t, Boxes> classes;
  for (const auto& box : detected) {
    classes[box.label].detected.push_back(&box);
  }
  for (const auto& box : truth) {
    classes[box.label].truth.push_back(&box);
  }
  std::vector<ClassMatches> matches;
  matches.reserve(classes.size());
  for (auto& [label, boxes] : classes) {
    matches.push_back(match_class(label, boxes));
  }
  return matches;
}

}  // namespace muster
