#pragma once

#include "image_spool_internal.h"
#include "phase_internal.h"

#include <muster/base/record.h>
#include <muster/comm/group.h>
#include <muster/train/callback.h>
#include <muster/train/options.h>
#include <muster/train/pass.h>
#include <muster/train/precision.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// What an epoch gave after its sync: equal on every rank, in the order of a single process.
struct EpochResult {
  Report report{};
  std::vector<ImageRecord> images{};
  std::vector<Table> tables{};
  std::vector<LoggedText> texts{};
  /// A signal has stopped it on some rank, so that this is not all of it; 0: none. Equal on every
  /// rank.
  int stop_signal = 0;
};

/// What a loop works with.
struct Loop {
  const TrainerOptions& options;
  Group& group;
  ImageSpool& spool;
  std::vector<std::shared_ptr<Callback>>& callbacks;
  Phase& phase;
  int64_t epoch = 0;
  int64_t global_step = 0;
  /// Of a stage of its own: weights to be loaded; "": none.
  std::string ckpt_path{};
  /// Of the validations within a training: not null.
  Training* training = nullptr;
  /// Batches of the sanity check before a training; less than 0: this is none.
  int64_t sanity_batches = -1;
};

/// What the floating tensors of batches become under a precision; none: they stay as they are.
std::optional<at::ScalarType> batch_dtype(Precision precision);

/// One epoch of validate, test or predict, ending with its one sync. Leaves torch's generator as it
/// was. A sanity check calls no callbacks. A rank that is told to stop by a signal leaves its other
/// batches out.
EpochResult evaluate(Pass& pass, Loop& loop);

/// Tells the callbacks that the epoch which `evaluate` ran has ended with `report`.
void end_epoch(const Pass& pass, const Loop& loop, const Report& report);

}  // namespace muster
