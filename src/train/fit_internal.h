#pragma once

#include "checkpoint_choice_internal.h"
#include "image_spool_internal.h"
#include "phase_internal.h"
#include "run_writer_internal.h"

#include <muster/base/record.h>
#include <muster/comm/group.h>
#include <muster/train/callback.h>
#include <muster/train/options.h>
#include <muster/train/pass.h>
#include <muster/train/train_pass.h>

#include <memory>
#include <string>
#include <vector>

namespace muster {

/// What a training works with.
struct FitContext {
  const TrainerOptions& options;
  const FitStart& start;
  Group& group;
  ImageSpool& spool;
  std::vector<std::shared_ptr<Callback>>& callbacks;
  Phase& phase;
  RunWriter* writer = nullptr;  ///< on rank 0
};

struct FitResult {
  /// The latest value of each name that training or validation reported, equal on every rank.
  Report report{};
  int64_t last_epoch = 0;  ///< of the last step
  /// The signal on some rank that ended the training; 0: none. Equal on every rank.
  int stop_signal = 0;
};

/// Trains a module, with validations in between unless `validation` is null, from the start or from
/// the checkpoint that `context.start` names.
FitResult fit(TrainPass& pass, Pass* validation, FitContext context);

}  // namespace muster
