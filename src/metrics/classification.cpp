#include <muster/base/check.h>
#include <muster/metrics/classification.h>

#include "src/metrics/labels_internal.h"
#include "src/metrics/state_internal.h"

#include <algorithm>

namespace muster {

namespace {

StatCounts& operator+=(StatCounts& total, const StatCounts& part) {
  total.tp += part.tp;
  total.fp += part.fp;
  total.tn += part.tn;
  total.fn += part.fn;
  return total;
}

int64_t elements(const StatCounts& counts) { return counts.tp + counts.fp + counts.tn + counts.fn; }

void count_class(std::vector<StatCounts>& counts, int32_t predicted, int32_t actual) {
  if (predicted == actual) {
    ++counts[static_cast<size_t>(actual)].tp;
  } else {
    ++counts[static_cast<size_t>(predicted)].fp;
    ++counts[static_cast<size_t>(actual)].fn;
  }
}

void count_yes_or_no(StatCounts& counts, int32_t predicted, int32_t actual) {
  const bool right = predicted == actual;
  ++(predicted == 1 ? (right ? counts.tp : counts.fp) : (right ? counts.tn : counts.fn));
}

std::vector<StatCounts> counts_of(const Labels& labels, Task task, size_t classes) {
  std::vector<StatCounts> counts(classes);
  int64_t seen = 0;
  labels.for_each([&](int64_t /*sample*/, int64_t group, int32_t predicted, int32_t actual) {
    if (task == Task::multiclass) {
      count_class(counts, predicted, actual);
      ++seen;
    } else {
      count_yes_or_no(counts[static_cast<size_t>(group)], predicted, actual);
    }
  });
  if (task == Task::multiclass) {
    for (auto& count : counts) {
      count.tn = seen - count.tp - count.fp - count.fn;
    }
  }
  return counts;
}

}  // namespace

StatScores::StatScores(ClassificationOptions options, Rule rule)
    : options_{std::move(options)}, rule_{rule} {
  check_classes(options_.task, options_.num_classes, options_.num_labels, options_.class_names);
  check(options_.top_k >= 1 &&
            (options_.task != Task::multiclass || options_.top_k <= options_.num_classes),
        "top_k is 1 to num_classes, not {}", options_.top_k);
  check(options_.threshold >= 0.0 && options_.threshold <= 1.0, "a threshold is in [0, 1], not {}",
        options_.threshold);
  check(options_.zero_division == 0.0 || options_.zero_division == 1.0,
        "zero_division is 0 or 1, not {}", options_.zero_division);
  reset();
}

void StatScores::update(const at::Tensor& preds, const at::Tensor& target) {
  check(options_.task != Task::multiclass || options_.top_k == 1 ||
            at::isFloatingType(preds.scalar_type()),
        "top_k above 1 needs scores, not integers");
  const auto labels = labels_of(preds, target, options_);
  const auto added = counts_of(labels, options_.task, counts_.size());
  for (size_t i = 0; i < added.size(); ++i) {
    counts_[i] += added[i];
  }
}

bool StatScores::is_empty() const {
  return std::all_of(counts_.begin(), counts_.end(),
                     [](const StatCounts& counts) { return elements(counts) == 0; });
}

std::string StatScores::state() {
  if (is_empty()) {
    return {};
  }
  StateWriter writer;
  for (const auto& counts : counts_) {
    for (const int64_t count : {counts.tp, counts.fp, counts.tn, counts.fn}) {
      writer.integer(count);
    }
  }
  return writer.take();
}

void StatScores::merge(std::string_view state) {
  StateReader reader{state};
  auto merged = counts_;
  for (auto& counts : merged) {
    StatCounts other;
    for (int64_t* count : {&other.tp, &other.fp, &other.tn, &other.fn}) {
      *count = reader.integer();
    }
    counts += other;
  }
  reader.finish();
  counts_ = std::move(merged);
}

double StatScores::score(const StatCounts& counts) const {
  const auto fraction = rule_.fraction(counts, options_.task);
  if (fraction.denominator == 0) {
    return rule_.has_zero_division ? options_.zero_division : 0.0;
  }
  return static_cast<double>(fraction.numerator) / static_cast<double>(fraction.denominator);
}

double StatScores::weight(const StatCounts& counts) const {
  const int64_t truth = counts.tp + counts.fn;
  if (options_.average == Average::weighted) {
    return static_cast<double>(truth);
  }
  const bool needs_truth = options_.top_k > 1 && rule_.top_k_needs_truth;
  const int64_t present = needs_truth ? truth : truth + counts.fp;
  return options_.task == Task::multiclass && present == 0 ? 0.0 : 1.0;
}

MetricResult StatScores::compute() {
  MetricResult result;
  if (options_.average == Average::none && options_.task != Task::binary) {
    for (size_t i = 0; i < counts_.size(); ++i) {
      result.values.emplace_back(class_name(options_.class_names, static_cast<int64_t>(i)),
                                 is_empty() ? std::nullopt : std::optional{score(counts_[i])});
    }
    return result;
  }
  if (is_empty()) {
    return single(std::nullopt);
  }
  if (options_.average == Average::micro || options_.task == Task::binary) {
    StatCounts all;
    for (const auto& counts : counts_) {
      all += counts;
    }
    return single(score(all));
  }
  double sum = 0.0;
  double weights = 0.0;
  for (const auto& counts : counts_) {
    sum += weight(counts) * score(counts);
    weights += weight(counts);
  }
  return single(weights > 0.0 ? sum / weights : 0.0);
}

void StatScores::reset() {
  counts_.assign(
      static_cast<size_t>(class_count(options_.task, options_.num_classes, options_.num_labels)),
      {});
}

Accuracy::Accuracy(ClassificationOptions options)
    : StatScores{std::move(options),
                 {.fraction =
                      [](const StatCounts& counts, Task task) {
                        return task == Task::multiclass
                                   ? Fraction{counts.tp, counts.tp + counts.fn}
                                   : Fraction{counts.tp + counts.tn, elements(counts)};
                      },
                  .has_zero_division = false}} {}

PrecisionScore::PrecisionScore(ClassificationOptions options)
    : StatScores{std::move(options), {.fraction = [](const StatCounts& counts, Task /*task*/) {
                   return Fraction{counts.tp, counts.tp + counts.fp};
                 }}} {}

Recall::Recall(ClassificationOptions options)
    : StatScores{std::move(options), {.fraction = [](const StatCounts& counts, Task /*task*/) {
                   return Fraction{counts.tp, counts.tp + counts.fn};
                 }}} {}

F1Score::F1Score(ClassificationOptions options)
    : StatScores{std::move(options),
                 {.fraction =
                      [](const StatCounts& counts, Task /*task*/) {
                        return Fraction{2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn};
                      },
                  .top_k_needs_truth = false}} {}

}  // namespace muster
