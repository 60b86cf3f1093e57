#pragma once

#include <muster/train/precision.h>
#include <muster/value/convert.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace muster {

/// How much of a loader an epoch takes: a whole number of global batches, or a fraction of them
/// (Lightning's rule: 1 is one batch, 1.0 is all).
class BatchLimit {
 public:
  /// All batches.
  BatchLimit() = default;
  BatchLimit(int batches) : limit_{int64_t{batches}} {}  // NOLINT(google-explicit-constructor)
  BatchLimit(int64_t batches) : limit_{batches} {}       // NOLINT(google-explicit-constructor)
  BatchLimit(double fraction) : limit_{fraction} {}      // NOLINT(google-explicit-constructor)

  /// How many of `batches` an epoch takes; `name` is for the message when the limit is negative, a
  /// fraction above 1, or a fraction that comes to no batch at all (Error of kind `usage`).
  [[nodiscard]] int64_t of(int64_t batches, std::string_view name) const;
  /// The same where `batches` may be unknown: then a fraction must be 0 or 1 (all: INT64_MAX).
  [[nodiscard]] int64_t of(std::optional<int64_t> batches, std::string_view name) const;
  [[nodiscard]] const std::variant<int64_t, double>& value() const { return limit_; }
  /// Whether it is 0, or 0.0.
  [[nodiscard]] bool is_zero() const {
    return std::visit([](auto limit) { return limit == 0; }, limit_);
  }

 private:
  std::variant<int64_t, double> limit_ = 1.0;
};

template <>
struct ValueConverter<BatchLimit> {
  static Value write(const BatchLimit& limit);
  static void read(const Value& value, BatchLimit& target, const ValuePath& path);
};

/// Compute threads of a rank.
struct ThreadCount {
  /// 0 is "auto": the rank's share of the cores.
  int64_t count = 1;
};

template <>
struct ValueConverter<ThreadCount> {
  static Value write(const ThreadCount& threads);
  static void read(const Value& value, ThreadCount& target, const ValuePath& path);
};

/// A quick run of everything, to find what does not work.
struct FastDevRun {
  /// Batches of each stage; 0: no such run. `true` in YAML is 1.
  int64_t batches = 0;
};

template <>
struct ValueConverter<FastDevRun> {
  static Value write(const FastDevRun& run);
  static void read(const Value& value, FastDevRun& target, const ValuePath& path);
};

enum class ClipAlgorithm {
  norm,   ///< scales all gradients so that their L2 norm is at most the value
  value,  ///< cuts each element to [-value, value]
};
constexpr auto enum_names(ClipAlgorithm /*unused*/) {
  return std::array{std::pair{"norm", ClipAlgorithm::norm},
                    std::pair{"value", ClipAlgorithm::value}};
}

/// What follows when a rank's loss is NaN or infinite; all ranks do it at the same step.
enum class NonFiniteLoss {
  stop,  ///< an error that names rank, step and samples
  skip,  ///< the step changes no parameter, and counts
};
constexpr auto enum_names(NonFiniteLoss /*unused*/) {
  return std::array{std::pair{"stop", NonFiniteLoss::stop}, std::pair{"skip", NonFiniteLoss::skip}};
}

/// What follows when a checkpoint cannot be written.
enum class CheckpointFailure {
  stop,  ///< an error
  warn,  ///< a line on stderr, and the training goes on; an error at its end if the last one failed
};
constexpr auto enum_names(CheckpointFailure /*unused*/) {
  return std::array{std::pair{"stop", CheckpointFailure::stop},
                    std::pair{"warn", CheckpointFailure::warn}};
}

enum class Strategy {
  ddp,                              ///< each loss depends on every parameter
  ddp_find_unused_parameters_true,  ///< parameters may be left out of a loss; slower
};
constexpr auto enum_names(Strategy /*unused*/) {
  return std::array{
      std::pair{"ddp", Strategy::ddp},
      std::pair{"ddp_find_unused_parameters_true", Strategy::ddp_find_unused_parameters_true}};
}

/// Options of a Trainer; names are Lightning's where it has one. Batches are global ones, whatever
/// the number of ranks.
struct TrainerOptions {
  /// Processes that share the work. More than 1 starts them (`muster::run`), unless a launcher has.
  int64_t devices = 1;
  /// Compute threads of a rank: a number, or "auto" for its share of the cores. A model's sums
  /// depend on it, so the default is one whatever the number of ranks.
  ThreadCount threads{};
  /// Seed of shuffling and augmentation (of loaders without a seed of their own), of the module's
  /// first weights and of torch's generator.
  int64_t seed = 0;
  /// Types to compute in.
  Precision precision = Precision::f32_true;
  /// Whether parameters may be left out of a loss.
  Strategy strategy = Strategy::ddp;

  /// Epochs of a training; -1: without end. By default 1000, or without end where max_steps or
  /// max_time is given.
  std::optional<int64_t> max_epochs{};
  /// Optimizer steps of a training; -1: no limit.
  int64_t max_steps = -1;
  /// Time of a training, "DD:HH:MM:SS"; "": no limit. All ranks stop after the same step.
  std::string max_time{};
  /// Batches of each rank whose gradients make one optimizer step.
  int64_t accumulate_grad_batches = 1;
  /// Bound of the gradients before an optimizer step; none: they are not clipped.
  std::optional<double> gradient_clip_val{};
  /// What the bound is of.
  ClipAlgorithm gradient_clip_algorithm = ClipAlgorithm::norm;
  /// What follows when a loss is not finite.
  NonFiniteLoss non_finite_loss = NonFiniteLoss::stop;
  /// Names the operation whose backward gave NaN; slow.
  bool detect_anomaly = false;

  /// Validation within an epoch: after this many batches, or this part of them. 1.0: at its end.
  BatchLimit val_check_interval{};
  /// Validation in every n-th epoch; none: val_check_interval (a number) counts across epochs.
  std::optional<int64_t> check_val_every_n_epoch = 1;
  /// Batches of validation before training, to find what does not work; -1: all.
  int64_t num_sanity_val_steps = 2;

  /// Batches of a training epoch.
  BatchLimit limit_train_batches{};
  /// Batches of a validation epoch.
  BatchLimit limit_val_batches{};
  /// Batches of a test epoch.
  BatchLimit limit_test_batches{};
  /// Batches of a prediction.
  BatchLimit limit_predict_batches{};
  /// Trains on the first batches alone, the same ones each epoch and without shuffling, and
  /// validates on as many. 0: off.
  BatchLimit overfit_batches = 0.0;
  /// One epoch of a few batches of each stage, without loggers and checkpoints.
  FastDevRun fast_dev_run{};

  /// Where everything is written; "" is runs/PROGRAM.
  std::string run_dir{};
  /// CSV, W&B (offline) and TensorBoard; false: none of them.
  bool logger = true;
  /// W&B's project.
  std::string project = "muster";
  /// Optimizer steps between two rows of values that training logs; an epoch's last step has one
  /// too.
  int64_t log_every_n_steps = 50;
  /// Checkpoints of a training; without a ModelCheckpoint of one's own, at the end of each epoch.
  bool enable_checkpointing = true;
  /// Writes checkpoints beside the training, as the values were at the call; an error shows at the
  /// next step, the next checkpoint or the end.
  bool async_checkpointing = false;
  /// What follows when a checkpoint cannot be written; those before it stay in any case.
  CheckpointFailure checkpoint_failure = CheckpointFailure::stop;
  /// After each n-th optimizer step all ranks compare their parameters, to the bit; 0: never. For
  /// the search for what makes them differ: it reads all parameters, and gathers their digests.
  int64_t check_weights_every_n_steps = 0;
  /// Progress on stderr: a bar on a terminal, lines elsewhere.
  bool enable_progress_bar = true;
  /// A table of the module's parts on stderr before training.
  bool enable_model_summary = true;
  /// Seconds a rank waits for another in a collective before it gives up.
  double timeout = 600.0;

  static constexpr auto fields = field_list(
      Field{"devices", &TrainerOptions::devices}, Field{"threads", &TrainerOptions::threads},
      Field{"seed", &TrainerOptions::seed}, Field{"precision", &TrainerOptions::precision},
      Field{"strategy", &TrainerOptions::strategy},
      Field{"max_epochs", &TrainerOptions::max_epochs},
      Field{"max_steps", &TrainerOptions::max_steps}, Field{"max_time", &TrainerOptions::max_time},
      Field{"accumulate_grad_batches", &TrainerOptions::accumulate_grad_batches},
      Field{"gradient_clip_val", &TrainerOptions::gradient_clip_val},
      Field{"gradient_clip_algorithm", &TrainerOptions::gradient_clip_algorithm},
      Field{"non_finite_loss", &TrainerOptions::non_finite_loss},
      Field{"detect_anomaly", &TrainerOptions::detect_anomaly},
      Field{"val_check_interval", &TrainerOptions::val_check_interval},
      Field{"check_val_every_n_epoch", &TrainerOptions::check_val_every_n_epoch},
      Field{"num_sanity_val_steps", &TrainerOptions::num_sanity_val_steps},
      Field{"limit_train_batches", &TrainerOptions::limit_train_batches},
      Field{"limit_val_batches", &TrainerOptions::limit_val_batches},
      Field{"limit_test_batches", &TrainerOptions::limit_test_batches},
      Field{"limit_predict_batches", &TrainerOptions::limit_predict_batches},
      Field{"overfit_batches", &TrainerOptions::overfit_batches},
      Field{"fast_dev_run", &TrainerOptions::fast_dev_run},
      Field{"run_dir", &TrainerOptions::run_dir}, Field{"logger", &TrainerOptions::logger},
      Field{"project", &TrainerOptions::project},
      Field{"log_every_n_steps", &TrainerOptions::log_every_n_steps},
      Field{"enable_checkpointing", &TrainerOptions::enable_checkpointing},
      Field{"async_checkpointing", &TrainerOptions::async_checkpointing},
      Field{"checkpoint_failure", &TrainerOptions::checkpoint_failure},
      Field{"check_weights_every_n_steps", &TrainerOptions::check_weights_every_n_steps},
      Field{"enable_progress_bar", &TrainerOptions::enable_progress_bar},
      Field{"enable_model_summary", &TrainerOptions::enable_model_summary},
      Field{"timeout", &TrainerOptions::timeout});
};

/// Seconds of a time such as "00:12:00:00" (days, hours, minutes, seconds); Error of kind `usage`
/// that names `name`.
double parse_time(std::string_view text, std::string_view name);

/// The epochs of a training; INT64_MAX without a bound of their number.
int64_t most_epochs(const TrainerOptions& options);

/// Error of kind `usage` that names the first option out of its range.
void check_options(const TrainerOptions& options);

}  // namespace muster
