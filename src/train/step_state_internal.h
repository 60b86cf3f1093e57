#pragma once

#include "image_spool_internal.h"
#include "phase_internal.h"

#include <muster/comm/group.h>
#include <muster/metrics/ledger.h>
#include <muster/train/stage.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace muster {

/// What a Step stands on: where the loop is, and where logged things go.
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
  at::Device device = at::kCPU;
  /// In fit, where the values of single steps, and all images and texts go until the next row.
  Ledger* row = nullptr;
  /// Whether the step under way ends with a row.
  bool logging_step = false;
  /// Whether values that do not say otherwise are the step's: in the hooks of fit's batches.
  bool in_step = false;

  int64_t loader = 0;
  int64_t batch_idx = -1;
  /// Samples of the batch; null in a hook without one.
  const std::vector<int64_t>* indices = nullptr;
  Moment moment{};
  /// Where the batch was left for the hooks of its step.
  int64_t left_batch_idx = -1;
  const std::vector<int64_t>* left_indices = nullptr;
  Moment left_moment{};
  /// How often each image key was used in this batch.
  std::map<std::string, size_t, std::less<>> image_calls{};
  /// Key, sample and caption of each image of this batch, or of the hooks around the loaders.
  std::set<std::tuple<std::string, int64_t, std::string>> image_names{};
  /// Values shown beside the progress bar.
  std::vector<std::pair<std::string, double>> shown{};

  [[nodiscard]] Ledger& media() { return row != nullptr ? *row : ledger; }

  /// The hooks before the loaders, or after them.
  void enter_hooks(bool before);
  /// `first` is the global batch that the ranks have begun with.
  void enter_batch(int64_t loader_idx, int64_t batch, const std::vector<int64_t>& samples,
                   int64_t first = 0);
  /// The hooks of a step of training that belong to no batch; global batch `last` is the step's
  /// last one.
  void enter_step(int64_t last);
  /// Back to the batch that this rank was in.
  void leave_step();
};

}  // namespace muster
