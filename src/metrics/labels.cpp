#include "src/metrics/labels_internal.h"

#include <ATen/ops/argmax.h>
#include <muster/base/check.h>
#include <muster/value/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {

namespace {

bool is_whole(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

int32_t checked_class(int64_t value, int64_t classes, const char* what, size_t place) {
  if (value < 0 || value >= classes) [[unlikely]] {
    fail(ErrorKind::data,
         "{} has the class {} at element {} (row-major), but classes are 0 to {}: name the classes "
         "to leave out by ignore_index, or raise num_classes",
         what, value, place, classes - 1);
  }
  return static_cast<int32_t>(value);
}

std::vector<int32_t> actual_labels(const std::vector<int64_t>& target, int64_t classes,
                                   const std::optional<int64_t>& ignore_index) {
  std::vector<int32_t> labels(target.size());
  for (size_t i = 0; i < target.size(); ++i) {
    labels[i] = target[i] == ignore_index ? Labels::ignored
                                          : checked_class(target[i], classes, "the target", i);
  }
  return labels;
}

/// `preds` of classes, where the element counts.
std::vector<int32_t> predicted_labels(const std::vector<int64_t>& preds, int64_t classes,
                                      const std::vector<int32_t>& actual) {
  std::vector<int32_t> labels(preds.size());
  for (size_t i = 0; i < preds.size(); ++i) {
    if (actual[i] != Labels::ignored) {
      labels[i] = checked_class(preds[i], classes, "the prediction", i);
    }
  }
  return labels;
}

std::vector<int32_t> above(const at::Tensor& preds, const ClassificationOptions& options) {
  auto scores = host_doubles(preds);
  apply_sigmoid(scores, options.score_kind);
  std::vector<int32_t> labels(scores.size());
  std::transform(scores.begin(), scores.end(), labels.begin(),
                 [&](double score) { return score > options.threshold ? 1 : 0; });
  return labels;
}

/// Whether class `c` stands before class `other`, as torch.argmax has it: NaN above all, then the
/// higher score, then the lower class.
bool is_better(double score, size_t c, double other_score, size_t other) {
  if (std::isnan(score) || std::isnan(other_score)) {
    return std::isnan(score) && (!std::isnan(other_score) || c < other);
  }
  return score > other_score || (score == other_score && c < other);
}

/// The true class where it is among the k best, else the best one. Scores are [N, C, inner].
std::vector<int32_t> best_of_top_k(const at::Tensor& preds, const std::vector<int32_t>& actual,
                                   int64_t top_k) {
  const auto scores = host_doubles(preds);
  const auto best = host_integers(at::argmax(preds, 1));
  const auto classes = static_cast<size_t>(preds.size(1));
  std::vector<int32_t> labels(actual.size());
  const size_t inner = actual.empty() ? 1 : actual.size() / static_cast<size_t>(preds.size(0));
  for (size_t i = 0; i < actual.size(); ++i) {
    labels[i] = static_cast<int32_t>(best[i]);
    if (actual[i] == Labels::ignored) {
      continue;
    }
    const double* of = &scores[i / inner * classes * inner + i % inner];
    const auto truth = static_cast<size_t>(actual[i]);
    int64_t better = 0;
    for (size_t c = 0; c < classes; ++c) {
      better += is_better(of[c * inner], c, of[truth * inner], truth) ? 1 : 0;
    }
    if (better < top_k) {
      labels[i] = actual[i];
    }
  }
  return labels;
}

}  // namespace

Labels labels_of(const at::Tensor& preds, const at::Tensor& target,
                 const ClassificationOptions& options) {
  check_shapes(preds, target, options.task, options.num_classes, options.num_labels);
  const bool multiclass = options.task == Task::multiclass;
  const int64_t classes = multiclass ? options.num_classes : 2;
  Labels labels;
  labels.samples = target.dim() > 0 ? target.size(0) : 1;
  labels.groups = options.task == Task::multilabel ? options.num_labels : 1;
  labels.inner = labels.samples > 0 ? target.numel() / labels.samples / labels.groups : 0;
  labels.actual = actual_labels(host_integers(target), classes, options.ignore_index);
  if (is_whole(preds)) {
    labels.predicted = predicted_labels(host_integers(preds), classes, labels.actual);
  } else if (!multiclass) {
    labels.predicted = above(preds, options);
  } else if (options.top_k > 1) {
    labels.predicted = best_of_top_k(preds, labels.actual, options.top_k);
  } else {
    const auto best = host_integers(at::argmax(preds, 1));
    labels.predicted.assign(best.begin(), best.end());
  }
  return labels;
}

void check_classes(Task task, int64_t num_classes, int64_t num_labels,
                   const std::vector<std::string>& class_names) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  check(task != Task::multiclass || (num_classes >= 2 && num_classes <= most),
        "a multiclass metric has num_classes of 2 or more, not {}", num_classes);
  check(task != Task::multilabel || (num_labels >= 1 && num_labels <= most),
        "a multilabel metric has num_labels of 1 or more, not {}", num_labels);
  const auto classes = class_count(task, num_classes, num_labels);
  check(class_names.empty() || static_cast<int64_t>(class_names.size()) == classes,
        "a metric of {} classes has {} class_names; give one each, or none", classes,
        class_names.size());
}

int64_t class_count(Task task, int64_t num_classes, int64_t num_labels) {
  return task == Task::multiclass ? num_classes : task == Task::multilabel ? num_labels : 1;
}

std::string class_name(const std::vector<std::string>& names, int64_t i) {
  return names.empty() ? format("{}", i) : names[static_cast<size_t>(i)];
}

void check_shapes(const at::Tensor& preds, const at::Tensor& target, Task task, int64_t num_classes,
                  int64_t num_labels) {
  check(preds.defined() && target.defined(), "{} is an undefined tensor",
        preds.defined() ? "the target" : "the prediction");
  check(is_whole(target), "the target must be of integers or bool, not {}", describe(target));
  const bool scores = at::isFloatingType(preds.scalar_type());
  check(scores || is_whole(preds), "predictions must be floating scores or integers, not {}",
        describe(preds));
  if (task == Task::multiclass && scores) {
    bool fits = preds.dim() == target.dim() + 1 && target.dim() > 0 &&
                preds.size(0) == target.size(0) && preds.size(1) == num_classes;
    for (int64_t i = 1; fits && i < target.dim(); ++i) {
      fits = preds.size(i + 1) == target.size(i);
    }
    check(fits,
          "multiclass scores must be [N, {}, ...] for a target [N, ...], not {} for a target {}",
          num_classes, describe(preds), describe(target));
    return;
  }
  check(preds.sizes() == target.sizes(),
        "predictions and target must have one shape, not {} and {}", describe(preds),
        describe(target));
  check(task != Task::multilabel || (preds.dim() >= 2 && preds.size(1) == num_labels),
        "multilabel predictions and target must be [N, {}, ...], not {}", num_labels,
        describe(preds));
}

bool are_logits(const std::vector<double>& scores, ScoreKind kind) {
  return kind == ScoreKind::logits ||
         (kind == ScoreKind::detect && std::any_of(scores.begin(), scores.end(), [](double score) {
            return score < 0.0 || score > 1.0;
          }));
}

void apply_sigmoid(std::vector<double>& scores, ScoreKind kind) {
  if (!are_logits(scores, kind)) {
    return;
  }
  for (double& score : scores) {
    score = 1.0 / (1.0 + std::exp(-score));
  }
}

}  // namespace muster
