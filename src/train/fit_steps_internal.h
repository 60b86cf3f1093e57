#pragma once

#include "fit_log_internal.h"

#include <muster/train/ddp.h>

#include <cstdint>
#include <vector>

namespace muster {

/// The optimizer steps of an epoch.
class FitSteps {
 public:
  FitSteps(TrainPass& pass, bool validates, FitContext& context, StepState& state);
  FitSteps(const FitSteps&) = delete;
  FitSteps& operator=(const FitSteps&) = delete;

  /// Global batches of an epoch.
  [[nodiscard]] int64_t batches() const { return batches_; }
  /// Starts loading what is left of the epoch.
  void begin_epoch(const Position& at);
  /// One optimizer step: its micro-batches forward and backward, the gradients of all ranks, the
  /// optimizer, and the hooks of these. What the ranks have agreed on: whether to stop after it,
  /// and whether to save, which `wants_save` asks for.
  AgreedFlags step(TrainingState& training, bool wants_save);
  /// Where callbacks are told that the training stands.
  [[nodiscard]] const Progress& progress(TrainingState& training);

 private:
  /// The batches first..end of all ranks, dealt in rounds.
  struct Plan {
    int64_t first = 0;
    int64_t end = 0;
    int64_t samples = 0;
    /// Whether some ranks have no batch in the last round.
    bool uneven = false;
  };

  /// A loss of this rank that is not finite.
  struct Bad {
    int64_t batch = 0;
    double loss = 0.0;
    std::vector<int64_t> samples{};
  };

  [[nodiscard]] Plan plan(const Position& at) const;
  [[nodiscard]] bool is_logging_step(const Position& at, const Plan& plan) const;
  [[nodiscard]] bool is_validation_due(const Position& at, const Plan& plan) const;
  AgreedFlags forward_backward(TrainingState& training, const Plan& plan, bool wants_save);
  at::Tensor training_step(const Position& at, int64_t k);
  /// Throws on all ranks for a loss that is not finite on some.
  void refuse(const Position& at);
  void update_parameters(TrainingState& training, bool skip);
  void end_batch();

  TrainPass& pass_;
  FitContext& context_;
  StepState& state_;
  bool validates_;
  int64_t batches_;
  /// What the module gave for the batch whose end is still to come.
  at::Tensor loss_{};
  std::vector<Bad> bad_{};
  Progress progress_{};
};

}  // namespace muster
