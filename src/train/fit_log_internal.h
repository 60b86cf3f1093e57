#pragma once

#include "fit_internal.h"
#include "step_state_internal.h"
#include "training_state_internal.h"

#include <muster/metrics/ledger.h>
#include <muster/metrics/metric.h>
#include <muster/train/step.h>
#include <muster/value/value.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// What a training logs, and where it goes: a row every few steps, a report at each epoch's end.
class FitLog {
 public:
  FitLog(FitContext& context, const std::vector<std::pair<std::string, Metric*>>& metrics);
  FitLog(const FitLog&) = delete;
  FitLog& operator=(const FitLog&) = delete;

  /// What the hooks' Step stands on.
  [[nodiscard]] StepState& state() { return state_; }

  /// Runs a hook without a batch, before the batches of the epoch or after them.
  void hook(bool before, const Position& at, const std::function<void(Step&)>& hook);
  /// Takes what is in the spool, before an evaluation uses it.
  void take_images();
  /// The values of the step that has just ended, of all ranks: the one sync of a row.
  void write_row(TrainingState& training);
  /// Forgets the metrics of the epoch before.
  void begin_epoch();
  /// What all ranks have logged since the epoch began and is not in a row yet, on rank 0, for a
  /// checkpoint; null on the others. All ranks call it.
  [[nodiscard]] Value collect(const Value& run);
  /// Takes up the values, images and texts of steps that `collected` holds for the next row.
  void restore_row(const Value& collected);
  /// Takes up the values of the epoch in place of what the hooks before its batches have logged
  /// since, for they had run before the checkpoint.
  void restore_epoch(const Value& collected);
  /// The values of the epoch, and what else waits: the one sync of an epoch.
  Report end_epoch(TrainingState& training);
  /// What hooks after the last epoch logged, then results.json and the report.
  void finish(TrainingState& training);

 private:
  Report publish(TrainingState& training,
                 const std::vector<std::pair<std::string, Metric*>>& metrics);
  EpochResult sync(TrainingState& training, Ledger& ledger,
                   const std::vector<std::pair<std::string, Metric*>>& metrics);

  FitContext& context_;
  const std::vector<std::pair<std::string, Metric*>>& metrics_;
  Ledger epoch_{};
  Ledger row_{};
  StepState state_;
};

/// The states of metrics while an evaluation uses them.
class SavedMetrics {
 public:
  explicit SavedMetrics(const std::vector<std::pair<std::string, Metric*>>& metrics);
  SavedMetrics(const SavedMetrics&) = delete;
  SavedMetrics& operator=(const SavedMetrics&) = delete;

  /// Gives them back.
  void restore();

 private:
  const std::vector<std::pair<std::string, Metric*>>& metrics_;
  std::vector<std::string> states_;
};

}  // namespace muster
