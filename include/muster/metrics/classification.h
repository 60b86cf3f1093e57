#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/metric.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// What a sample is.
enum class Task {
  binary,      ///< of a class, or not
  multiclass,  ///< of one of several classes
  multilabel,  ///< each of several labels, or not
};

constexpr auto enum_names(Task) {
  return std::array{std::pair{"binary", Task::binary}, std::pair{"multiclass", Task::multiclass},
                    std::pair{"multilabel", Task::multilabel}};
}

/// How the classes' scores become one.
enum class Average {
  micro,     ///< counts of all classes are summed first
  macro,     ///< mean of the classes
  weighted,  ///< mean of the classes, each weighed by its number of true samples
  none,      ///< a value for each class
};

constexpr auto enum_names(Average) {
  return std::array{std::pair{"micro", Average::micro}, std::pair{"macro", Average::macro},
                    std::pair{"weighted", Average::weighted}, std::pair{"none", Average::none}};
}

/// What floating-point predictions are. Better said than detected: few logits may all lie in [0,
/// 1].
enum class ScoreKind {
  detect,         ///< logits if an `update` has one outside [0, 1], as TorchMetrics takes them
  probabilities,  ///< taken as they are
  logits,         ///< go through a sigmoid, or a softmax over the classes
};

constexpr auto enum_names(ScoreKind) {
  return std::array{std::pair{"detect", ScoreKind::detect},
                    std::pair{"probabilities", ScoreKind::probabilities},
                    std::pair{"logits", ScoreKind::logits}};
}

/// Names are TorchMetrics'.
struct ClassificationOptions {
  Task task = Task::multiclass;      ///< what a sample is
  int64_t num_classes = 0;           ///< of multiclass; at least 2
  int64_t num_labels = 0;            ///< of multilabel; at least 1
  Average average = Average::micro;  ///< of multiclass and multilabel
  int64_t top_k = 1;                 ///< multiclass: the true class among the k best is right
  double threshold = 0.5;            ///< a binary or multilabel score above it is a yes
  ScoreKind score_kind = ScoreKind::detect;  ///< what binary and multilabel scores are
  std::optional<int64_t> ignore_index{};     ///< elements whose target is this are left out
  double zero_division = 0.0;                ///< 0 or 1: what 0 / 0 is in precision, recall and F1
  std::vector<std::string> class_names{};    ///< for Average::none; empty: "0", "1", ...
};

/// True and false positives and negatives of one class or label.
struct StatCounts {
  int64_t tp = 0;
  int64_t fp = 0;
  int64_t tn = 0;
  int64_t fn = 0;
};

/// What Accuracy, PrecisionScore, Recall and F1Score share: whole counts for each class (one for
/// binary), from which `compute` takes the score, in double. They give what TorchMetrics 1.9 gives
/// with multidim_average "global" for predictions of dtype double (it rounds to the predictions'
/// own type on the way; here every score is a double at once).
///
/// A class with neither true nor predicted samples scores 0 (`zero_division` except for accuracy),
/// and is left out of a multiclass macro mean; with `top_k` above 1 a class without true samples
/// is, except for F1. Of scores that are equal, the class with the lower number is the better one.
///
/// Its value is named "", or with Average::none one for each class is named as the class. No value
/// when no element was counted.
class StatScores : public Metric {
 public:
  /// `target`: integers or bool. `preds`: for binary of the same shape, for multilabel
  /// [N, num_labels, ...] as the target; floating scores, or integers 0 and 1. For multiclass
  /// floating scores [N, num_classes, ...] for a target [N, ...], or integers of its shape. Any
  /// device, any real dtype. Error of kind `usage` for other shapes and dtypes, of kind `data` for
  /// a class out of range.
  void update(const at::Tensor& preds, const at::Tensor& target);

  /// One for each class; one for binary.
  [[nodiscard]] const std::vector<StatCounts>& counts() const { return counts_; }

  std::string state() override;
  void merge(std::string_view state) override;
  MetricResult compute() override;
  void reset() override;

 protected:
  struct Fraction {
    int64_t numerator = 0;
    int64_t denominator = 0;
  };
  struct Rule {
    Fraction (*fraction)(const StatCounts& counts, Task task) = nullptr;
    bool has_zero_division = true;
    bool top_k_needs_truth = true;
  };
  /// Error of kind `usage` for options that TorchMetrics refuses.
  StatScores(ClassificationOptions options, Rule rule);

 private:
  [[nodiscard]] double score(const StatCounts& counts) const;
  [[nodiscard]] double weight(const StatCounts& counts) const;
  [[nodiscard]] bool is_empty() const;

  ClassificationOptions options_;
  Rule rule_;
  std::vector<StatCounts> counts_;
};

/// The share of predictions that are right: tp / (tp + fn) of a multiclass class, (tp + tn) / all
/// for binary and labels.
class Accuracy : public StatScores {
 public:
  explicit Accuracy(ClassificationOptions options);
};

/// tp / (tp + fp): TorchMetrics' Precision. (`muster::Precision` is what a Trainer computes in.)
class PrecisionScore : public StatScores {
 public:
  explicit PrecisionScore(ClassificationOptions options);
};

/// tp / (tp + fn).
class Recall : public StatScores {
 public:
  explicit Recall(ClassificationOptions options);
};

/// 2 tp / (2 tp + fp + fn).
class F1Score : public StatScores {
 public:
  explicit F1Score(ClassificationOptions options);
};

}  // namespace muster
