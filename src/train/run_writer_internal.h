#pragma once

#include "evaluate_internal.h"
#include "folder_lock_internal.h"

#include <muster/track/logger.h>
#include <muster/value/value.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace muster {

/// What rank 0 writes: the run folder and its loggers. Nothing here communicates.
class RunWriter {
 public:
  explicit RunWriter(const TrainerOptions& options);

  void log_hyperparameters(const Value& config, const std::string& yaml);
  /// Makes the folder ready for a stage: keeps other commands out of it until the stage ends,
  /// removes the spool of a command that failed, and old predictions before new ones.
  void begin_stage(Stage stage, int world_size);
  /// A training begins anew: `last` and `best` are an earlier one's no longer.
  void begin_training();
  /// Writes the outcome of an epoch of validate, test or predict: images, tables, results.json,
  /// loggers, the report.
  void publish(EpochResult& result);
  /// Gives the loggers what training logged, and keeps it for `publish_training`.
  void log_training(EpochResult& result);
  /// Of a training, for its checkpoint: where the loggers stand, and the images so far.
  [[nodiscard]] Value state() const;
  /// A training goes on after step `step`, with the values that it had reported and a `state`; the
  /// loggers do where the checkpoint is this run's own.
  void continue_training(std::vector<std::pair<std::string, std::optional<double>>> latest,
                         const Value& state, int64_t step, bool is_own);
  /// Writes the training so far into results.json, and the report now and then.
  void publish_training(int64_t epochs, int64_t steps);
  /// Builds the report, and removes images that results.json does not name any more.
  void publish_report();
  /// Removes the spool and lets others in.
  void end_stage();
  /// Ends every logger's run; a second call does nothing. What goes wrong first is told on standard
  /// error: what was logged before is on the disk already.
  void close(int exit_code) noexcept;

 private:
  void open_loggers();
  void log(EpochResult& result);
  void replace_tables(const EpochResult& result) const;
  void publish_report_if_cheap();
  void keep_images(std::vector<ImageRecord>& images) const;
  void drop_unnamed_images() const;

  TrainerOptions options_;
  std::filesystem::path run_dir_;
  Value config_;
  std::string config_yaml_;
  std::vector<std::unique_ptr<Logger>> loggers_;
  /// Of a training: the latest value of each name, and all images.
  EpochResult training_{};
  /// When a report may be built again while a training goes on.
  std::chrono::steady_clock::time_point next_report_{};
  bool opened_ = false;
  std::optional<FolderLock> lock_{};
};

}  // namespace muster
