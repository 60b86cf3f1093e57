#pragma once

#include "image_spool_internal.h"
#include "phase_internal.h"

#include <muster/base/record.h>
#include <muster/comm/group.h>
#include <muster/train/callback.h>
#include <muster/train/options.h>
#include <muster/train/pass.h>

#include <memory>
#include <string>
#include <vector>

namespace muster {

/// What an epoch gave after its sync: equal on every rank, in the order of a single process.
struct EpochResult {
  Report report{};
  std::vector<ImageRecord> images{};
  std::vector<Table> tables{};
  std::vector<LoggedText> texts{};
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
};

/// One epoch of validate, test or predict, ending with its one sync. Leaves torch's generator as it
/// was.
EpochResult evaluate(Pass& pass, Loop& loop);

}  // namespace muster
