#pragma once

#include <filesystem>

namespace muster {

/// Rebuilds run_dir/report.html from what lies in the run folder: results.json, tables/*.csv,
/// metrics.csv and the pictures media/<sha256>.png that results.json names. One page that refers to
/// nothing outside itself and trusts no text it shows. Pictures of more than 30 MB in all are left
/// out, and the page says how many.
///
/// Error of kind `data` when results.json is none, `output` or `io` when the page cannot be
/// written.
void write_report(const std::filesystem::path& run_dir);

}  // namespace muster
