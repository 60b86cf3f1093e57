#pragma once

#include <muster/track/logger.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace muster {

struct WandbOptions {
  /// The folder in which `wandb/` lies or is made: the run's folder.
  std::filesystem::path dir{};
  /// The project that `wandb sync` uploads to.
  std::string project = "muster";
  /// What the run is called there; empty: W&B makes one up.
  std::string name{};
  /// The user or team; empty: that of the key.
  std::string entity{};
  /// Runs of one group are shown together; empty: none.
  std::string group{};
  /// The run's id, [A-Za-z0-9_-]+; empty: eight random characters.
  std::string id{};
  /// Written into the header as the program that made the file.
  std::string producer = "muster";
  /// Unix time in seconds, for tests; empty: the system's clock.
  std::function<double()> clock{};
};

/// Writes an offline run that `wandb sync` uploads: dir/wandb/offline-run-YYYYMMDD_HHMMSS-ID. No
/// W&B program is needed and nothing leaves the machine. Each record is one write(2), so a killed
/// run is readable up to its last whole record. Rows are numbered (`_step`) 0, 1, 2, ... in the
/// order of the calls and carry the optimizer step as `trainer/global_step`, W&B's x axis. Tables
/// are passed over. A training that goes on has a run of its own, whose configuration says
/// `resumed_from`: the id of the run before, and the step.
///
/// A value may not be called `_step`, `_runtime`, `_timestamp` or `trainer/global_step`: Error of
/// kind `usage`. Not safe to share between threads; the folder is created here.
std::unique_ptr<Logger> make_wandb_logger(WandbOptions options);

}  // namespace muster
