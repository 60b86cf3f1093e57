#pragma once

#include "evaluate_internal.h"

#include <muster/track/logger.h>
#include <muster/value/value.h>

#include <filesystem>
#include <memory>
#include <vector>

namespace muster {

/// What rank 0 writes: the run folder and its loggers. Nothing here communicates.
class RunWriter {
 public:
  explicit RunWriter(const TrainerOptions& options);

  void log_hyperparameters(const Value& config);
  /// Makes the folder ready for a stage: removes the spool of a command that failed, and old
  /// predictions before new ones.
  void begin_stage(Stage stage, int world_size);
  /// Writes the outcome of an epoch: images, tables, results.json, loggers, the report.
  void publish(EpochResult& result);
  /// Ends every logger's run and throws the first one's error; a second call does nothing.
  void finish(int exit_code);

 private:
  void open_loggers();
  void keep_images(std::vector<ImageRecord>& images) const;
  void drop_unnamed_images() const;

  TrainerOptions options_;
  std::filesystem::path run_dir_;
  Value config_;
  std::vector<std::unique_ptr<Logger>> loggers_;
  bool opened_ = false;
};

}  // namespace muster
