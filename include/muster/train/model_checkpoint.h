#pragma once

#include <muster/train/callback.h>
#include <muster/train/monitor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace muster {

/// Names are Lightning's.
struct ModelCheckpointOptions {
  /// The value of training or validation that says which checkpoint is better; "": the newest is
  /// the best.
  std::string monitor{};
  /// Whether a better value is lower or higher.
  MonitorMode mode = MonitorMode::min;
  /// How many to keep: the best ones (without a monitor the newest ones). -1: all.
  int64_t save_top_k = -1;
  /// Whether the newest one is written where it is none of the best, too; it goes when the next one
  /// is there.
  bool save_last = true;
  /// After each n-th optimizer step; 0: not.
  int64_t every_n_train_steps = 0;
  /// At the end of each n-th epoch; 0: not. By default 1, or 0 with every_n_train_steps.
  std::optional<int64_t> every_n_epochs{};
  /// Name of a checkpoint: `{epoch}`, `{step}` or a value of training or validation, with a format
  /// as `{val/loss:.3f}` where it is to be rounded. What cannot stand in a name becomes '_'; a name
  /// that another one has gets the ending -v1, -v2, ...
  std::string filename = "{epoch}-{step}";
  /// Whether `{epoch}` gives `epoch=3`, or `3` alone.
  bool auto_insert_metric_name = true;
};

/// Has checkpoints written while a module is trained: at the moments that the options name (with a
/// monitor and no `every_n_train_steps`, after a validation within an epoch too), once a step at
/// most, and always one at the end of the training. `last.ckpt` is the newest; `best.ckpt` the best
/// by the monitor, or the newest while the monitor has no value.
///
/// A checkpoint's value must be of its step to count among the best; where that is not known (after
/// an n-th step) it is the latest one. NaN is the worst value. Of equal ones the first is the best.
///
/// Several are right in one training where their file names differ: each removes its own. A
/// training that is gone on with keeps those of its list that lie in its run folder, wherever that
/// was moved to, and are its own; so its list is empty in another folder, and what another training
/// wrote under the same name stays.
class ModelCheckpoint final : public Callback {
 public:
  /// Error of kind `usage` for an option out of its range.
  explicit ModelCheckpoint(ModelCheckpointOptions options = {});
  ~ModelCheckpoint() override;

  /// Folders of checkpoints, "" while there is none.
  [[nodiscard]] std::string best_model_path() const;
  [[nodiscard]] std::string last_model_path() const;
  /// The monitor's value of the best one; nothing while it had none.
  [[nodiscard]] std::optional<double> best_model_score() const;

  void on_start(const Progress& progress) override;
  void on_batch_end(const Progress& progress) override;
  /// Error of kind `usage` where neither training nor validation has ever logged the monitor.
  void on_epoch_end(const Progress& progress, const Report& report) override;
  void on_end(const Progress& progress) override;
  [[nodiscard]] std::string state_key() const override;
  [[nodiscard]] Value state() const override;
  void load_state(const Value& state) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
