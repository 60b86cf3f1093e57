#include <muster/base/check.h>
#include <muster/metrics/ranking.h>
#include <muster/value/tensor.h>

#include "src/metrics/labels_internal.h"
#include "src/metrics/state_internal.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace muster {

namespace {

/// The [N, C, inner] scores of the elements that count, one after the other.
std::vector<double> kept_scores(const std::vector<double>& scores, size_t classes, size_t inner,
                                const std::vector<int64_t>& target,
                                const std::optional<int64_t>& ignore_index) {
  std::vector<double> kept;
  kept.reserve(scores.size());
  for (size_t i = 0; i < target.size(); ++i) {
    for (size_t c = 0; c < classes && target[i] != ignore_index; ++c) {
      kept.push_back(scores[(i / inner * classes + c) * inner + i % inner]);
    }
  }
  return kept;
}

void apply_softmax(std::span<double> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (double& score : scores) {
    score = std::exp(score - highest);
    sum += score;
  }
  for (double& score : scores) {
    score /= sum;
  }
}

void check_class(int64_t value, int64_t classes) {
  check(value >= 0 && value < classes, ErrorKind::data,
        "the target has the class {}, but classes are 0 to {}: name the classes to leave out by "
        "ignore_index, or raise num_classes",
        value, classes - 1);
}

/// The number of scores at the front that are `score`, taken away.
int64_t take_equal(std::span<const double>& scores, double score) {
  size_t count = 0;
  while (count < scores.size() && scores[count] == score) {
    ++count;
  }
  scores = scores.subspan(count);
  return static_cast<int64_t>(count);
}

bool has_nan(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

}  // namespace

RankingMetric::RankingMetric(RankingOptions options, Area area)
    : options_{std::move(options)}, area_{area} {
  check_classes(options_.task, options_.num_classes, options_.num_labels, options_.class_names);
  check(options_.task != Task::multiclass || options_.average != Average::micro,
        "the curve of a multiclass task has no micro average; take macro, weighted or none");
  reset();
}

void RankingMetric::update(const at::Tensor& preds, const at::Tensor& target) {
  check_shapes(preds, target, options_.task, options_.num_classes, options_.num_labels);
  check(at::isFloatingType(preds.scalar_type()), "a curve needs floating scores, not {}",
        describe(preds));
  const auto truth = host_integers(target);
  const bool multiclass = options_.task == Task::multiclass;
  const size_t width = multiclass ? classes_.size() : 1;
  const size_t inner =
      truth.empty() ? 1 : truth.size() / static_cast<size_t>(target.dim() > 0 ? target.size(0) : 1);
  auto scores = kept_scores(host_doubles(preds), width, inner, truth, options_.ignore_index);
  if (!multiclass) {
    apply_sigmoid(scores, options_.score_kind);
  } else if (are_logits(scores, options_.score_kind)) {
    for (size_t i = 0; i < scores.size(); i += width) {
      apply_softmax(std::span{scores}.subspan(i, width));
    }
  }
  for (const int64_t value : truth) {
    if (value != options_.ignore_index) {
      check_class(value, multiclass ? options_.num_classes : 2);
    }
  }
  const size_t group_size = inner / (multiclass ? 1 : classes_.size());
  size_t next = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] == options_.ignore_index) {
      continue;
    }
    for (size_t c = 0; c < width; ++c) {
      const size_t of = multiclass || classes_.size() == 1 ? c : i / group_size % classes_.size();
      const bool positive = truth[i] == (multiclass ? static_cast<int64_t>(c) : 1);
      (positive ? classes_[of].positive : classes_[of].negative).push_back(scores[next++]);
    }
  }
}

std::string RankingMetric::state() {
  StateWriter writer;
  bool any = false;
  for (const auto& scores : classes_) {
    for (const auto* list : {&scores.positive, &scores.negative}) {
      writer.integer(static_cast<int64_t>(list->size()));
      writer.numbers(*list);
      any = any || !list->empty();
    }
  }
  return any ? writer.take() : "";
}

void RankingMetric::merge(std::string_view state) {
  StateReader reader{state};
  std::vector<std::vector<double>> added;
  for (size_t i = 0; i < 2 * classes_.size(); ++i) {
    added.push_back(reader.numbers(reader.integer()));
  }
  reader.finish();
  for (size_t i = 0; i < added.size(); ++i) {
    auto& list = i % 2 == 0 ? classes_[i / 2].positive : classes_[i / 2].negative;
    list.insert(list.end(), added[i].begin(), added[i].end());
  }
}

std::optional<double> RankingMetric::value_of(Scores scores) const {
  if (scores.positive.empty() && scores.negative.empty()) {
    return std::nullopt;
  }
  if (has_nan(scores.positive) || has_nan(scores.negative)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::sort(scores.positive.begin(), scores.positive.end(), std::greater{});
  std::sort(scores.negative.begin(), scores.negative.end(), std::greater{});
  std::span<const double> positive{scores.positive};
  std::span<const double> negative{scores.negative};
  std::vector<Point> points;
  Point at;
  while (!positive.empty() || !negative.empty()) {
    const bool next = negative.empty() || (!positive.empty() && positive[0] > negative[0]);
    const double threshold = next ? positive[0] : negative[0];
    at.tp += take_equal(positive, threshold);
    at.fp += take_equal(negative, threshold);
    points.push_back(at);
  }
  return area_(points, options_.task);
}

MetricResult RankingMetric::compute() {
  if (options_.task == Task::multilabel && options_.average == Average::micro) {
    Scores all;
    for (const auto& scores : classes_) {
      all.positive.insert(all.positive.end(), scores.positive.begin(), scores.positive.end());
      all.negative.insert(all.negative.end(), scores.negative.begin(), scores.negative.end());
    }
    return single(value_of(std::move(all)));
  }
  if (options_.task == Task::binary) {
    return single(value_of(classes_[0]));
  }
  MetricResult each;
  double sum = 0.0;
  double weights = 0.0;
  bool any = false;
  for (size_t i = 0; i < classes_.size(); ++i) {
    const auto value = value_of(classes_[i]);
    each.values.emplace_back(class_name(options_.class_names, static_cast<int64_t>(i)), value);
    if (value) {
      const bool weighted = options_.average == Average::weighted;
      const double weight = weighted ? static_cast<double>(classes_[i].positive.size()) : 1.0;
      sum += weight * *value;
      weights += weight;
      any = true;
    }
  }
  if (options_.average == Average::none) {
    return each;
  }
  return single(any ? std::optional{weights > 0.0 ? sum / weights : 0.0} : std::nullopt);
}

void RankingMetric::reset() {
  classes_.assign(
      static_cast<size_t>(class_count(options_.task, options_.num_classes, options_.num_labels)),
      {});
}

AUROC::AUROC(RankingOptions options)
    : RankingMetric{std::move(options),
                    [](std::span<const Point> points, Task /*task*/) -> std::optional<double> {
                      int64_t twice = 0;
                      Point before;
                      for (const auto& point : points) {
                        twice += (point.fp - before.fp) * (point.tp + before.tp);
                        before = point;
                      }
                      if (before.tp == 0 || before.fp == 0) {
                        return 0.0;
                      }
                      return static_cast<double>(twice) / 2.0 / static_cast<double>(before.tp) /
                             static_cast<double>(before.fp);
                    }} {}

AveragePrecision::AveragePrecision(RankingOptions options)
    : RankingMetric{std::move(options),
                    [](std::span<const Point> points, Task task) -> std::optional<double> {
                      const int64_t positives = points.back().tp;
                      if (positives == 0) {
                        return task == Task::multiclass ? std::nullopt : std::optional{0.0};
                      }
                      double area = 0.0;
                      int64_t before = 0;
                      for (const auto& [tp, fp] : points) {
                        area += static_cast<double>(tp - before) / static_cast<double>(positives) *
                                (static_cast<double>(tp) / static_cast<double>(tp + fp));
                        before = tp;
                      }
                      return area;
                    }} {}

}  // namespace muster
