#pragma once

#include <ATen/core/Tensor.h>
#include <muster/metrics/classification.h>

#include "src/metrics/host_values_internal.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// Which class each element is and was said to be, as [samples, groups, inner]. A group is one
/// label of several; binary and multiclass have one.
struct Labels {
  static constexpr int32_t ignored = -1;

  std::vector<int32_t> predicted{};
  std::vector<int32_t> actual{};  ///< `ignored` where the element does not count
  int64_t samples = 0;
  int64_t groups = 1;
  int64_t inner = 1;

  /// Calls f(sample, group, predicted, actual) for each element that counts.
  template <typename F>
  void for_each(const F& f) const {
    size_t i = 0;
    for (int64_t sample = 0; sample < samples; ++sample) {
      for (int64_t group = 0; group < groups; ++group) {
        for (const size_t end = i + static_cast<size_t>(inner); i < end; ++i) {
          if (actual[i] != ignored) {
            f(sample, group, predicted[i], actual[i]);
          }
        }
      }
    }
  }
};

/// The labels of an `update` under these options. Errors as StatScores::update says.
Labels labels_of(const at::Tensor& preds, const at::Tensor& target,
                 const ClassificationOptions& options);

/// Error of kind `usage` unless `task` has its number of classes, and names are as many.
void check_classes(Task task, int64_t num_classes, int64_t num_labels,
                   const std::vector<std::string>& class_names);

/// Classes of multiclass, labels of multilabel, else 1.
int64_t class_count(Task task, int64_t num_classes, int64_t num_labels);

/// The name of class `i`, its number where there are no names.
std::string class_name(const std::vector<std::string>& names, int64_t i);

/// Error of kind `usage` unless `preds` and `target` fit the task, as StatScores::update says.
void check_shapes(const at::Tensor& preds, const at::Tensor& target, Task task, int64_t num_classes,
                  int64_t num_labels);

/// Puts the scores through a sigmoid if they are logits.
void apply_sigmoid(std::vector<double>& scores, ScoreKind kind);

/// Whether scores of this kind are logits.
bool are_logits(const std::vector<double>& scores, ScoreKind kind);

}  // namespace muster
