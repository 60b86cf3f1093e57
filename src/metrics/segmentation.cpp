#include <muster/base/check.h>
#include <muster/metrics/segmentation.h>
#include <muster/value/value.h>

#include "src/metrics/labels_internal.h"

namespace muster {

namespace {

std::optional<double> quotient(int64_t numerator, int64_t denominator) {
  return denominator > 0
             ? std::optional{static_cast<double>(numerator) / static_cast<double>(denominator)}
             : std::nullopt;
}

void count(std::vector<RegionCounts>& counts, int32_t predicted, int32_t actual) {
  ++counts[static_cast<size_t>(predicted)].predicted;
  ++counts[static_cast<size_t>(actual)].actual;
  if (predicted == actual) {
    ++counts[static_cast<size_t>(actual)].intersection;
  }
}

void add(RegionCounts& total, const RegionCounts& part) {
  total.intersection += part.intersection;
  total.predicted += part.predicted;
  total.actual += part.actual;
}

std::optional<double> dice(const RegionCounts& region) {
  return quotient(2 * region.intersection, region.predicted + region.actual);
}

}  // namespace

SegmentationMetric::SegmentationMetric(SegmentationOptions options, Gives gives)
    : options_{std::move(options)}, gives_{gives} {
  check_classes(Task::multiclass, options_.num_classes, 0, options_.class_names);
  reset();
}

bool SegmentationMetric::is_left_out(int64_t class_number) const {
  return class_number == options_.ignore_index ||
         (class_number == 0 && !options_.include_background);
}

bool SegmentationMetric::is_global() const {
  return options_.aggregation_level == AggregationLevel::global;
}

void SegmentationMetric::update(const at::Tensor& preds, const at::Tensor& target) {
  const auto labels = labels_of(preds, target,
                                {.task = Task::multiclass,
                                 .num_classes = options_.num_classes,
                                 .ignore_index = options_.ignore_index});
  const auto classes = total_.size();
  std::vector<std::vector<RegionCounts>> samples(static_cast<size_t>(labels.samples),
                                                 std::vector<RegionCounts>(classes));
  labels.for_each([&](int64_t sample, int64_t /*group*/, int32_t predicted, int32_t actual) {
    count(samples[static_cast<size_t>(sample)], predicted, actual);
  });
  for (auto& regions : samples) {
    for (size_t c = 0; c < classes; ++c) {
      if (is_left_out(static_cast<int64_t>(c))) {
        regions[c] = {};
      }
      if (is_global()) {
        add(total_[c], regions[c]);
      }
    }
    if (!is_global()) {
      add_scores(means_, regions);
    }
  }
}

void SegmentationMetric::add_scores(std::vector<Mean>& means,
                                    const std::vector<RegionCounts>& regions) const {
  const auto scores = scores_of(regions);
  means.resize(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i]) {
      means[i].update(*scores[i]);
    }
  }
}

std::string SegmentationMetric::state() {
  Value::List list;
  bool any = false;
  for (auto& mean : means_) {
    list.emplace_back(mean.state());
    any = any || mean.value().has_value();
  }
  for (const auto& region : total_) {
    for (const int64_t pixels : {region.intersection, region.predicted, region.actual}) {
      list.emplace_back(pixels);
      any = any || pixels > 0;
    }
  }
  return any ? to_bytes(list) : "";
}

void SegmentationMetric::merge(std::string_view state) {
  const auto list = from_bytes(state).as_list();
  const size_t counts = 3 * total_.size();
  check(list.size() >= counts, ErrorKind::data, "the state of a metric of {} classes has {} parts",
        total_.size(), list.size());
  auto means = means_;
  means.resize(list.size() - counts);
  for (size_t i = 0; i < means.size(); ++i) {
    if (const auto& bytes = list[i].as_string(); !bytes.empty()) {
      means[i].merge(bytes);
    }
  }
  auto total = total_;
  for (size_t c = 0; c < total.size(); ++c) {
    const auto* of = &list[means.size() + 3 * c];
    add(total[c], {of[0].as_int(), of[1].as_int(), of[2].as_int()});
  }
  means_ = std::move(means);
  total_ = std::move(total);
}

MetricResult SegmentationMetric::compute() {
  auto means = means_;
  if (is_global() || means.empty()) {
    add_scores(means, total_);
  }
  MetricResult result;
  if (gives_ != Gives::classes) {
    Mean all;
    for (auto& mean : means) {
      if (mean.value()) {
        all.merge(mean.state());
      }
    }
    result.values.emplace_back("", all.value());
  }
  for (size_t i = 0; gives_ != Gives::mean && i < means.size(); ++i) {
    if (const auto c = static_cast<int64_t>(i); !is_left_out(c)) {
      result.values.emplace_back(class_name(options_.class_names, c), means[i].value());
    }
  }
  return result;
}

void SegmentationMetric::reset() {
  means_.clear();
  total_.assign(static_cast<size_t>(options_.num_classes), {});
}

MeanIoU::MeanIoU(const SegmentationOptions& options)
    : SegmentationMetric{options, options.per_class ? Gives::both : Gives::mean} {}

SegmentationMetric::Scores MeanIoU::scores_of(const std::vector<RegionCounts>& regions) const {
  Scores scores;
  for (const auto& region : regions) {
    scores.push_back(
        quotient(region.intersection, region.predicted + region.actual - region.intersection));
  }
  return scores;
}

DiceScore::DiceScore(const SegmentationOptions& options)
    : SegmentationMetric{options, options.average == Average::none ? Gives::classes : Gives::mean} {
}

SegmentationMetric::Scores DiceScore::scores_of(const std::vector<RegionCounts>& regions) const {
  RegionCounts all;
  Scores scores;
  for (const auto& region : regions) {
    add(all, region);
    scores.push_back(dice(region));
  }
  const bool weighted = options().average == Average::weighted;
  if (options().average == Average::none) {
    return scores;
  }
  if (options().average == Average::micro || all.predicted + all.actual == 0) {
    return {dice(all)};
  }
  double sum = 0.0;
  double weights = 0.0;
  for (size_t c = 0; c < scores.size(); ++c) {
    if (scores[c]) {
      const double weight = weighted ? static_cast<double>(regions[c].actual) : 1.0;
      sum += weight * *scores[c];
      weights += weight;
    }
  }
  return {weights > 0.0 ? sum / weights : 0.0};
}

}  // namespace muster
