#pragma once

#include <muster/base/record.h>
#include <muster/io/safetensors.h>
#include <muster/train/stage.h>
#include <muster/value/value.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace muster {

/// A checkpoint that a callback asks for.
struct SaveRequest {
  /// Of the folder, run_dir/checkpoints/NAME.ckpt: characters [A-Za-z0-9._=-]. One that is there is
  /// replaced.
  std::string name{};
  /// best.ckpt points to it from now on.
  bool best = false;
  /// Names of checkpoints to remove once this one is on the disk.
  std::vector<std::string> remove{};
};

/// The training that a callback follows, during an event. What is asked of it is asked alike on
/// every rank, unless it says otherwise.
class Training {
 public:
  virtual ~Training() = default;

  /// The module, its parameters and its buffers by the names of Python's `state_dict`.
  [[nodiscard]] virtual torch::nn::Module& module() const = 0;
  [[nodiscard]] virtual const NamedTensors& parameters() const = 0;
  [[nodiscard]] virtual const NamedTensors& buffers() const = 0;
  [[nodiscard]] virtual torch::optim::Optimizer& optimizer() const = 0;

  /// The latest value that training or validation reported under `name`: equal on every rank.
  /// Nothing when there is none yet, or no sample contributed.
  [[nodiscard]] virtual std::optional<double> metric(std::string_view name) const = 0;
  /// Names of all that have been reported, for messages.
  [[nodiscard]] virtual std::vector<std::string> metric_names() const = 0;

  /// Of the Trainer; its folder `checkpoints` holds what `save` writes.
  [[nodiscard]] virtual const std::string& run_dir() const = 0;
  /// A random name that a training gets when it starts anew, and keeps when it is gone on with: 32
  /// hexadecimal digits, or "" where it goes on from a checkpoint without one.
  [[nodiscard]] virtual const std::string& id() const = 0;
  /// Whether run_dir/checkpoints/NAME.ckpt was one of this very training when `fit` began.
  [[nodiscard]] virtual bool had_checkpoint(std::string_view name) const = 0;
  /// Copies rank 0's buffers to all ranks. All ranks call it, at the same event.
  virtual void broadcast_buffers() = 0;

  /// Whether the step that is under way ends with a row of values (see `log_every_n_steps`).
  [[nodiscard]] virtual bool is_logging_step() const = 0;
  /// Puts a value that is equal on every rank into the next row.
  virtual void log(std::string_view name, double value) = 0;

  /// Ends the training on all ranks at the same step: the step that is under way, or the one after
  /// it. May be asked on any rank; `reason` is for people.
  virtual void stop(std::string_view reason) = 0;
  /// Writes a checkpoint now (rank 0 does).
  virtual void save(const SaveRequest& request) = 0;
};

/// Where a loop stands when it calls its callbacks. The stage is a field, so that a callback needs
/// no method for each.
struct Progress {
  Stage stage = Stage::validate;
  int64_t epoch = 0;
  /// Optimizer steps taken so far.
  int64_t global_step = 0;
  int64_t loader = 0;
  int64_t loaders = 1;
  /// Global batches of this loader, after limits; -1 where only its end tells.
  int64_t batches = 0;
  /// Global batches that all ranks together have done, as far as this rank can tell.
  int64_t done = 0;
  /// In fit where `batches` is -1: whether some rank has more of them.
  bool more = false;
  /// This rank's latest values that were logged with `prog_bar`.
  std::vector<std::pair<std::string, double>> values{};
  /// Not null within `fit`, its validations included.
  Training* training = nullptr;

  /// Whether batches of this loader are still to come.
  [[nodiscard]] bool is_within_epoch() const { return batches >= 0 ? done < batches : more; }
};

/// Follows a run on every rank, in the loop's thread. Callbacks hold no Trainer. They are called in
/// the order in which they were added (ModelCheckpoint last), before the module's hook of the same
/// name where a batch or an epoch starts, after it where one ends; `on_end` in the opposite order.
/// The sanity check of `fit` calls none.
class Callback {
 public:
  Callback() = default;
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  virtual ~Callback() = default;

  /// A stage begins: in fit before its first epoch, after a checkpoint was loaded.
  virtual void on_start(const Progress& /*progress*/) {}
  virtual void on_epoch_start(const Progress& /*progress*/) {}
  /// In fit, on every rank: gradients are those of the whole step, not yet clipped.
  virtual void on_before_optimizer_step(const Progress& /*progress*/) {}
  /// In fit once an optimizer step, on every rank; else once a batch of this rank.
  virtual void on_batch_end(const Progress& /*progress*/) {}
  /// After the sync: `report` is equal on every rank.
  virtual void on_epoch_end(const Progress& /*progress*/, const Report& /*report*/) {}
  virtual void on_end(const Progress& /*progress*/) {}

  /// Under which a checkpoint keeps its state; "": it has none. Two callbacks of a Trainer with the
  /// same key are an Error of kind `usage`.
  [[nodiscard]] virtual std::string state_key() const { return ""; }
  /// What a resumed run needs.
  [[nodiscard]] virtual Value state() const { return {}; }
  /// Before `on_start`, with the module's tensors as the checkpoint has them.
  virtual void load_state(const Value& /*state*/) {}
  /// May replace tensors in what a checkpoint holds as the model.
  virtual void on_save(NamedTensors& /*model*/) const {}
};

}  // namespace muster
