#pragma once

#include <muster/data/loader.h>
#include <muster/train/callback.h>
#include <muster/train/job.h>
#include <muster/train/options.h>
#include <muster/train/typed_pass.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {

/// Who gets what `predict` returns.
enum class ReturnPredictions {
  none,         ///< nobody: hooks have dealt with the outputs
  global_zero,  ///< rank 0
  all,          ///< every rank
};

/// Runs a module over loaders on all ranks of a job. What comes out is what one process would give,
/// at any number of ranks. The same calls in the same order on every rank; one thread.
class Trainer {
 public:
  /// On the ranks of the job that this process was started in (`muster launch`, torchrun), alone
  /// otherwise. Ranks meet once: a second Trainer of a job takes the first one's group. Error of
  /// kind `usage` for an option out of its range.
  explicit Trainer(const TrainerOptions& options = {});
  Trainer(const TrainerOptions& options, Group group);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  /// Closes the loggers (as failed when an exception is under way). Never communicates.
  ~Trainer();

  /// Has `end` called when a stage fails, in the catch block and before the stage's data are
  /// destroyed, which may wait for samples that are being loaded. For a program that ends there.
  void on_failure(std::function<void()> end);
  /// Closes the loggers early, for a program that is about to end with `exit_code` and without
  /// destructors. Never communicates.
  void close(int exit_code) noexcept;

  /// The configuration that loggers show, without its secrets (muster/value/redact.h), and a text
  /// of it for the run folder's config.yaml (none where that is ""), as it is. Before the first
  /// stage, at most once.
  void log_hyperparameters(const Value& config, const std::string& yaml = "");
  void add_callback(std::shared_ptr<Callback> callback);

  /// Trains on `train`, and validates on `val` in between unless that is empty; from the start,
  /// from the weights in the file `ckpt_path`, or from the checkpoint folder `ckpt_path`: its
  /// weights, optimizer, schedulers, callbacks, epoch and step. "last" and "best" are the
  /// checkpoints of that name in run_dir, and where "last" is damaged the newest whole one there.
  /// The report has the latest value of each name that training or validation reported, and is
  /// equal on every rank. docs/training.md has the order of hooks.
  template <typename S, typename O>
  Report fit(Module<S, O>& module, const std::type_identity_t<Loader<S>>& train,
             const std::type_identity_t<LoaderList<S>>& val = {},
             const std::string& ckpt_path = "") {
    TypedTrainPass<S, O> pass{module, train};
    TypedPass<Stage::validate, S, O> validation{module, val};
    return fit(pass, val.loaders().empty() ? nullptr : &validation, ckpt_path);
  }

  /// One epoch over the loader (or several: then values logged in batches get the suffix
  /// /dataloader_idx_N). The report is equal on every rank. Weights are those that the module has,
  /// or those of `ckpt_path` (see load_weights). Epoch and global_step are those of the checkpoint,
  /// else where this Trainer's last `fit` has ended, else 0.
  template <typename S, typename O>
  Report validate(Module<S, O>& module, const std::type_identity_t<LoaderList<S>>& loaders,
                  const std::string& ckpt_path = "") {
    TypedPass<Stage::validate, S, O> pass{module, loaders};
    return evaluate(pass, ckpt_path);
  }
  template <typename S, typename O>
  Report test(Module<S, O>& module, const std::type_identity_t<LoaderList<S>>& loaders,
              const std::string& ckpt_path = "") {
    TypedPass<Stage::test, S, O> pass{module, loaders};
    return evaluate(pass, ckpt_path);
  }
  /// Outputs in data-set order on the ranks that `to` names, empty on the others. They are held in
  /// memory there; `predict_each` and `predict_to_shards` take any number.
  template <typename S, typename O>
  std::vector<O> predict(Module<S, O>& module, const std::type_identity_t<LoaderList<S>>& loaders,
                         ReturnPredictions to = ReturnPredictions::all,
                         const std::string& ckpt_path = "") {
    std::vector<O> outputs;
    if constexpr (!std::is_same_v<O, NoOutput>) {
      if (to != ReturnPredictions::none) {
        PredictionShardWriter mine{output_path(false)};
        TypedPass<Stage::predict, S, O> pass{module, loaders, &mine};
        predict(pass, mine, ckpt_path, to, [&](const PredictionKey&, std::string_view bytes) {
          outputs.push_back(from_value<O>(from_bytes(bytes)));
        });
        return outputs;
      }
    }
    TypedPass<Stage::predict, S, O> pass{module, loaders};
    evaluate(pass, ckpt_path);
    return outputs;
  }
  /// Gives `sink` on rank 0 each output once, in data-set order, after the last batch: from a file
  /// of each rank, so that no rank holds more than a few of them.
  template <typename S, typename O>
  void predict_each(Module<S, O>& module, const std::type_identity_t<LoaderList<S>>& loaders,
                    const std::type_identity_t<std::function<void(const PredictionKey&, O)>>& sink,
                    const std::string& ckpt_path = "") {
    PredictionShardWriter mine{output_path(false)};
    TypedPass<Stage::predict, S, O> pass{module, loaders, &mine};
    predict(pass, mine, ckpt_path, ReturnPredictions::global_zero,
            [&](const PredictionKey& key, std::string_view bytes) {
              sink(key, from_value<O>(from_bytes(bytes)));
            });
  }
  /// Each rank writes its outputs, with their indices, to run_dir/prediction_shards/rank-K-of-W;
  /// nothing travels. `merge_shards` reads them in data-set order. Gives the files of all ranks.
  template <typename S, typename O>
  std::vector<std::filesystem::path> predict_to_shards(
      Module<S, O>& module, const std::type_identity_t<LoaderList<S>>& loaders,
      const std::string& ckpt_path = "") {
    PredictionShardWriter mine{output_path(true)};
    TypedPass<Stage::predict, S, O> pass{module, loaders, &mine};
    return predict(pass, mine, ckpt_path);
  }

  /// Optimizer steps that `fit` on this loader takes if nothing stops it early, for schedules;
  /// nothing when neither max_epochs nor max_steps bounds it. Of data of unknown size: max_steps.
  template <typename S>
  [[nodiscard]] std::optional<int64_t> estimated_stepping_batches(const Loader<S>& train) const {
    return estimated_steps(train.size());
  }

  /// The options as resolved: run_dir is never empty.
  [[nodiscard]] const TrainerOptions& options() const;
  [[nodiscard]] Group& group();
  /// The signal that ended the last stage, the same on every rank; 0: none. An evaluation that was
  /// ended has no results: nothing of it is written, and its report is of part of the data. Signals
  /// are heeded after install_stop_signals (proc/signals.h), which `muster::run` calls.
  [[nodiscard]] int stop_signal() const;
  /// Where the stage stands that is running, or that an exception has ended: "validate, epoch 0,
  /// loader 0, batch 3"; "" between stages.
  [[nodiscard]] std::string phase() const;

 private:
  struct State;
  [[nodiscard]] std::optional<int64_t> estimated_steps(std::optional<int64_t> batches) const;
  /// `at_end` runs before the stage ends.
  Report evaluate(Pass& pass, const std::string& ckpt_path,
                  const std::function<void()>& at_end = {});
  Report fit(TrainPass& pass, Pass* validation, const std::string& ckpt_path);
  template <typename Run>
  Report run_stage(Stage stage, const std::string& sizes, const Run& run);
  [[nodiscard]] std::filesystem::path output_path(bool stays) const;
  void predict(Pass& pass, PredictionShardWriter& mine, const std::string& ckpt_path,
               ReturnPredictions to,
               const std::function<void(const PredictionKey&, std::string_view)>& sink);
  std::vector<std::filesystem::path> predict(Pass& pass, PredictionShardWriter& mine,
                                             const std::string& ckpt_path);

  std::unique_ptr<State> state_;
};

/// Copies weights into the parameters and buffers of `module`, by their names: `path` is a
/// .safetensors file or a folder with model.safetensors. Error of kind `usage` when there is none,
/// `data` when names or shapes differ.
void load_weights(ModuleBase& module, const std::string& path);

}  // namespace muster
