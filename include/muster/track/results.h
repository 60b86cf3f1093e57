#pragma once

#include <muster/base/record.h>

#include <filesystem>
#include <span>
#include <string_view>

namespace muster {

/// Writes the outcome of `report.stage` (fit, validate, test or predict) into run_dir/results.json,
/// in place of what that stage had there; the other stages keep their bytes. By way of a temporary
/// file and a rename.
///
/// Of fit, `epoch` and `step` are written as the numbers of epochs and steps done; of the others
/// `samples`. `images` stand in the order given. Predict has `metrics`, and fit `images`, only
/// where there are some. Doubles are written as `shortest` gives them, non-finite ones as texts, a
/// metric without a sample as null.
///
/// Error of kind `data` when there is a results.json that is none; `output` or `io` when it cannot
/// be written.
void replace_stage(const std::filesystem::path& run_dir, const Report& report,
                   std::span<const ImageRecord> images);

/// Error of kind `data` when run_dir holds a results.json that is none, to be known before a stage
/// is computed.
void check_results(const std::filesystem::path& run_dir);

/// Whether a table may have that name, which its file bears: the characters [A-Za-z0-9._-].
bool is_table_name(std::string_view name);

/// Writes run_dir/tables/STAGE-NAME.csv: `index`, then the table's columns; no value is an empty
/// cell. The name has the characters [A-Za-z0-9._-], each row a cell for each column, and indices
/// rise strictly: else an Error of kind `usage`.
void write_table(const std::filesystem::path& run_dir, const Table& table);

/// Removes the tables that an earlier run of `stage` left in run_dir/tables.
void remove_stage_tables(const std::filesystem::path& run_dir, std::string_view stage);

}  // namespace muster
