#pragma once

#include <muster/track/logger.h>

#include <filesystem>
#include <memory>

namespace muster {

struct CsvOptions {
  /// The run's folder; the rows go to metrics.csv in it.
  std::filesystem::path run_dir{};
};

/// Writes metrics.csv: columns `step`, `epoch`, then names in the order in which they appeared; one
/// row a call of log_metrics, empty cells where a name has no value, doubles as `shortest` gives
/// them. There is no file before the first row. An existing file is continued, less a last line
/// that has no end; a new name widens the header by writing the file anew and renaming it. Images,
/// tables and texts are passed over. A training that goes on takes out the rows and columns
/// that came after its checkpoint, where the last row before is the one that it was.
std::unique_ptr<Logger> make_csv_logger(const CsvOptions& options);

}  // namespace muster
