#pragma once

#include "checkpoint_saver_internal.h"
#include "fit_internal.h"

#include <muster/train/callback.h>
#include <muster/train/ddp.h>
#include <muster/train/module.h>
#include <muster/train/precision.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// How far a training is.
struct Position {
  int64_t epoch = 0;
  int64_t global_step = 0;
  int64_t batches_done = 0;     ///< global batches of this epoch
  bool validation_due = false;  ///< a validation follows the step that was the last one
  bool epoch_ended = false;     ///< its hooks have run, and its schedulers have gone on
};

/// What callbacks see of a training, and all that a checkpoint of it holds.
class TrainingState final : public Training {
 public:
  /// Asks the module for its optimizer, and makes all ranks' tensors those of rank 0. All ranks.
  TrainingState(ModuleBase& module, FitContext& context);

  [[nodiscard]] torch::nn::Module& module() const override { return module_; }
  [[nodiscard]] const NamedTensors& parameters() const override { return parameters_; }
  [[nodiscard]] const NamedTensors& buffers() const override { return buffers_; }
  [[nodiscard]] torch::optim::Optimizer& optimizer() const override {
    return *optimizers_.optimizer;
  }
  [[nodiscard]] std::optional<double> metric(std::string_view name) const override;
  [[nodiscard]] std::vector<std::string> metric_names() const override;
  [[nodiscard]] const std::string& run_dir() const override { return context_.options.run_dir; }
  [[nodiscard]] const std::string& id() const override { return context_.start.training; }
  [[nodiscard]] bool had_checkpoint(std::string_view name) const override {
    return context_.start.checkpoints.contains(name);
  }
  void broadcast_buffers() override { ddp_.broadcast_buffers(); }
  [[nodiscard]] bool is_logging_step() const override { return logging_step; }
  void log(std::string_view name, double value) override;
  void stop(std::string_view reason) override;
  void save(const SaveRequest& request) override;

  /// Throws the error of a checkpoint that was written beside the training, if there is one yet.
  void poll_saves() { saver_.poll(); }
  void finish_saves() { saver_.finish(); }

  /// The optimizer's parameters.
  [[nodiscard]] const std::vector<at::Tensor>& optimized() const { return optimized_; }
  /// Forgets all gradients, those too of parameters that the optimizer does not know.
  void zero_grad();
  [[nodiscard]] Ddp& ddp() { return ddp_; }
  /// Of 16-mixed; else null.
  [[nodiscard]] GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }

  /// Takes over the values of a report as the latest ones; one without a value leaves the last.
  void update(const Report& report);
  /// The latest value of each name, in the order in which they came; of the names that training
  /// itself has reported, or of all.
  [[nodiscard]] std::vector<std::pair<std::string, std::optional<double>>> latest(
      bool of_training_alone) const;
  /// Values that callbacks want in the next row; forgets them.
  std::vector<std::pair<std::string, double>> take_logged();
  /// Those schedulers go a step on that are due after the `count`-th interval.
  void step_schedulers(SchedulerConfig::Interval interval, int64_t count);

  /// Goes on from the checkpoint at `path`: everything that `save` wrote.
  void load(const std::string& path);

  Position position{};
  /// Of the last step that was taken.
  int64_t last_epoch = 0;
  /// What an epoch is made of: a training goes on within an epoch of the same alone.
  Value epoch_contents{};
  /// The step that was the last one ends with a row, which is still to be written.
  bool logging_step = false;
  /// Collects what was logged within the epoch, for a checkpoint. All ranks call it.
  std::function<Value()> collect_log{};
  /// An epoch is cut short and logged as a whole: checkpoints keep what was logged before that.
  void keep_log();
  /// Another epoch begins, or goes on.
  void forget_kept_log() { kept_.reset(); }
  /// Of the checkpoint that was loaded, on every rank; null where it has none.
  Value loaded_log{};
  /// Of the training that wrote that checkpoint.
  std::optional<int64_t> loaded_seed{};
  /// Set when this rank wants to stop: why.
  std::optional<std::string> stop_reason{};

 private:
  [[nodiscard]] Value state(const Value& log) const;
  /// A checkpoint within an epoch needs the rest of that epoch.
  void check_goes_on(const Value& saved, const std::string& path) const;

  ModuleBase& module_;
  FitContext& context_;
  NamedTensors parameters_;
  NamedTensors buffers_;
  Optimizers optimizers_;
  std::vector<at::Tensor> optimized_;
  std::vector<at::Tensor> others_;  // require a gradient, and are none of the optimizer's
  Ddp ddp_;
  std::optional<GradScaler> scaler_{};
  [[nodiscard]] Value latest_state() const;

  /// The log and the latest values, as `keep_log` found them.
  struct Kept {
    Value log{};
    Value latest{};
  };
  std::optional<Kept> kept_{};
  struct Latest {
    std::string name{};
    std::optional<double> value{};
    bool of_training = false;
  };
  std::vector<Latest> latest_{};
  std::vector<std::pair<std::string, double>> logged_{};
  CheckpointSaver saver_;
};

}  // namespace muster
