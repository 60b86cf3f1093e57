#pragma once

#include <muster/base/record.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// Values that belong to one moment of a run.
struct MetricsRow {
  int64_t step = 0;   ///< optimizer steps taken so far: trainer/global_step
  int64_t epoch = 0;  ///< counts from 0
  std::vector<std::pair<std::string, double>> values{};  ///< each name once, none empty
};

/// Where the values of a run go. Rank 0 calls it, from one thread. Every call has its effect on the
/// disk when it returns, so a run that is killed keeps what was logged before. All of them throw
/// Error: `output` when a file cannot be made, `io` when it cannot be written, `usage` when the
/// call breaks this contract.
class Logger {
 public:
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  virtual ~Logger() = default;

  /// The resolved configuration as a JSON object. At most once, before anything else.
  virtual void log_hyperparameters(std::string_view /*config_json*/) {}

  virtual void log_metrics(const MetricsRow& row) = 0;

  /// Images in the order in which they are to be seen; `file` of each holds its PNG now and need
  /// not stay. Neighbours that share key, step and index were one call of log_image and are shown
  /// together.
  virtual void log_images(std::span<const ImageRecord> /*images*/) {}

  virtual void log_table(const Table& /*table*/) {}

  virtual void log_text(std::string_view /*key*/, int64_t /*step*/, std::string_view /*text*/) {}

  /// Where the logger stands, for a checkpoint of a training; "" when it need not know.
  [[nodiscard]] virtual std::string position() const { return ""; }
  /// A training goes on in its own run folder from a checkpoint of `step` optimizer steps, in which
  /// `position` was kept: what was logged after it will be logged again. Before anything else is.
  virtual void go_on(std::string_view /*position*/, int64_t /*step*/) {}

  /// Ends the run. Once, as the last call; `exit_code` is that of the program. A logger that is
  /// destroyed without it leaves a run that looks killed.
  virtual void finish(int exit_code) = 0;
};

}  // namespace muster
