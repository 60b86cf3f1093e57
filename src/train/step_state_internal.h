#pragma once

#include "image_spool_internal.h"
#include "phase_internal.h"

#include <muster/comm/group.h>
#include <muster/metrics/ledger.h>
#include <muster/train/stage.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// What a Step stands on: where the loop is, and where logged things go. Made anew for each epoch.
struct StepState {
  Group& group;
  Ledger& ledger;
  ImageSpool& spool;
  const std::string& run_dir;
  Phase& phase;
  Stage stage = Stage::validate;
  int64_t epoch = 0;
  int64_t global_step = 0;
  int64_t loaders = 1;

  int64_t loader = 0;
  int64_t batch_idx = -1;
  /// Samples of the batch; null in a hook without one.
  const std::vector<int64_t>* indices = nullptr;
  Moment moment{};
  /// How often each image key was used in this batch.
  std::map<std::string, size_t, std::less<>> image_calls{};
  /// Values shown beside the progress bar.
  std::vector<std::pair<std::string, double>> shown{};

  /// The hooks before the loaders, or after them.
  void enter_hooks(bool before);
  void enter_batch(int64_t loader_idx, int64_t batch, const std::vector<int64_t>& samples);
};

}  // namespace muster
