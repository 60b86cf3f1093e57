#pragma once

#include <muster/base/record.h>
#include <muster/comm/group.h>
#include <muster/data/batch.h>
#include <muster/data/share.h>
#include <muster/metrics/metric.h>
#include <muster/train/stage.h>
#include <muster/train/step.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

struct OwnLoopOptions {
  /// Where the run is written.
  std::string run_dir = "runs/own_loop";
  /// Writes metrics.csv, a W&B run and TensorBoard's event file.
  bool logger = true;
  /// Of the W&B run.
  std::string project = "muster";
  /// Key of the loaders' orders and of the random numbers of batches.
  int64_t seed = 0;
};

/// What a Trainer does around an evaluation, for a loop that one writes oneself, without Module and
/// Trainer: dealt batches, a Step that logs on any rank, one sync an epoch, the run folder. The
/// same calls in the same order on every rank; one thread, the group's owner.
///
///     OwnLoop loop{group, {.run_dir = "runs/mine"}};
///     loop.begin_epoch(Stage::validate);
///     auto batches = loader.batches(0, loop.share());
///     while (const auto batch = batches.next()) {
///       Step step = loop.at(*batch);
///       step.log("val/loss", ...);
///     }
///     const Report report = loop.end_epoch();
class OwnLoop {
 public:
  explicit OwnLoop(Group group, const OwnLoopOptions& options = {});
  OwnLoop(const OwnLoop&) = delete;
  OwnLoop& operator=(const OwnLoop&) = delete;
  /// Ends the loggers' runs, as failed where an exception is passing.
  ~OwnLoop();

  /// Starts an epoch; Error of kind `usage` within another, and for Stage::fit, whose steps are the
  /// Trainer's. `loaders` are those that the loop reads one after another.
  void begin_epoch(Stage stage, int64_t epoch = 0, int64_t global_step = 0, int64_t loaders = 1);
  /// What `Loader::batches` gives this rank.
  [[nodiscard]] Share share() const;
  /// The Step of a batch, valid until the next call; seeds torch's generator by the batch, whatever
  /// rank has it. `loader` of several counts from 0. Error of kind `usage` for a step back.
  template <typename S>
  Step at(const Batch<S>& batch, int64_t loader = 0) {
    return at(batch.batch_idx(), batch.indices(), loader);
  }
  /// The Step after all batches, on every rank; valid until the next call.
  Step after_batches();
  /// The one sync of the epoch: what all ranks have logged, and the metrics by their names, merged.
  /// Equal on every rank. Rank 0 writes it. The metrics are those of all ranks then.
  Report end_epoch(const std::vector<std::pair<std::string, Metric*>>& metrics = {});
  [[nodiscard]] Group& group();

 private:
  struct State;
  Step at(int64_t batch_idx, const std::vector<int64_t>& indices, int64_t loader);
  std::unique_ptr<State> state_;
};

}  // namespace muster
