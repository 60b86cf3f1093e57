#pragma once

#include <muster/base/record.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster {

/// Beside the spooled images of a rank: a line for each, its file's name and its record as JSON.
constexpr const char* spooled_records = "images.txt";

/// The line of a spooled image.
std::string spooled_line(const std::filesystem::path& file, const ImageRecord& record);

/// Moves images that a run which ended early has left in run_dir/spool, and their records, to
/// run_dir/recovered/N/rank-K. How many they were.
int64_t recover_spool(const std::filesystem::path& run_dir);

}  // namespace muster
