#pragma once

#include "fit_log_internal.h"
#include "sync_batch_norm_internal.h"

#include <muster/train/ddp.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace muster {

/// The optimizer steps of an epoch.
class FitSteps {
 public:
  FitSteps(TrainPass& pass, bool validates, FitContext& context, StepState& state);
  FitSteps(const FitSteps&) = delete;
  FitSteps& operator=(const FitSteps&) = delete;

  /// Global batches of an epoch; nothing where only its end tells.
  [[nodiscard]] const std::optional<int64_t>& batches() const { return batches_; }
  /// Whether the epoch has batches behind `at`; of data of unknown size once it has begun.
  [[nodiscard]] bool has_more(const Position& at) const {
    return batches_ ? at.batches_done < *batches_ : more_;
  }
  /// Whether it is known that no epoch has a batch.
  [[nodiscard]] bool has_no_data() const { return limit_ == 0 || batches_ == 0; }
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
    /// Nothing where no rank knows it beforehand.
    std::optional<int64_t> samples{};
    /// Whether some ranks have no batch in some round: of data of known size, the last one.
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
  /// Takes batch `k`; false where this rank has no sample of it.
  bool take_batch(int64_t k);
  at::Tensor training_step(const Position& at, int64_t k);
  /// Adds the loss of the batch that was taken, `k`.
  void note_loss(const at::Tensor& loss, int64_t k, StepFlags& flags);
  /// What this rank has for the next step, where that is not known beforehand.
  void look_ahead(StepFlags& flags);
  /// The optimizer, and all that follows a step whose gradients are there.
  void finish_step(TrainingState& training, const Plan& plan, const AgreedFlags& agreed);
  /// Throws on all ranks for a loss that is not finite on some.
  void refuse(const Position& at);
  void update_parameters(TrainingState& training, bool skip);
  void end_batch();

  TrainPass& pass_;
  FitContext& context_;
  StepState& state_;
  bool validates_;
  /// Most global batches of an epoch.
  int64_t limit_;
  std::optional<int64_t> batches_;
  /// Without known counts: whether some rank has batches for the next step, and whether some rank
  /// has fewer than it may take.
  bool more_ = false;
  bool lacks_ = false;
  /// Whether ranks have gone to places behind the loader's, which a new section takes back.
  bool left_loader_ = false;
  /// Batches of the epoch that were done when it was begun, or gone on with.
  int64_t opened_at_ = 0;
  SyncedBatchNorms norms_{};
  /// What the module gave for the batch whose end is still to come.
  at::Tensor loss_{};
  std::vector<Bad> bad_{};
  Progress progress_{};
};

}  // namespace muster
