#pragma once

#include <muster/train/lr_scheduler.h>

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster {

/// A scheduler and when it goes a step on (Lightning's dictionary of a scheduler).
struct SchedulerConfig {
  enum class Interval {
    epoch,  ///< at the end of an epoch, after its validation
    step,   ///< after an optimizer step
  };

  std::shared_ptr<LrScheduler> scheduler{};
  /// What is counted.
  Interval interval = Interval::epoch;
  /// It goes on once in so many.
  int64_t frequency = 1;
  /// The value that `reduce_lr_on_plateau` follows, by its name in the reports of training or
  /// validation.
  std::string monitor{};
};

/// What `configure_optimizers` gives. Schedulers are made around the optimizer of the same answer.
struct Optimizers {
  std::shared_ptr<torch::optim::Optimizer> optimizer{};
  std::vector<SchedulerConfig> schedulers{};
};

}  // namespace muster
