#pragma once

#include <muster/base/record.h>
#include <muster/train/stage.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// Where a loop stands when it calls its callbacks. The stage is a field, so that a callback needs
/// no method for each.
struct Progress {
  Stage stage = Stage::validate;
  int64_t epoch = 0;
  int64_t loader = 0;
  int64_t loaders = 1;
  /// Global batches of this loader, after limits.
  int64_t batches = 0;
  /// Global batches that all ranks together have done, as far as this rank can tell.
  int64_t done = 0;
  /// This rank's latest values that were logged with `prog_bar`.
  std::vector<std::pair<std::string, double>> values{};
};

/// Follows a run on every rank, in the loop's thread. Callbacks hold no Trainer.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;

  /// Before the module's on_STAGE_epoch_start.
  virtual void on_epoch_start(const Progress& /*progress*/) {}
  /// After the module's on_STAGE_batch_end.
  virtual void on_batch_end(const Progress& /*progress*/) {}
  /// After the sync: `report` is equal on every rank.
  virtual void on_epoch_end(const Progress& /*progress*/, const Report& /*report*/) {}
};

}  // namespace muster
