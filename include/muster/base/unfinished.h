#pragma once

#include <filesystem>

namespace muster {

/// Whether the name is one under which write_file_atomically (base/files.h) writes before a file
/// gets its own: what bears it, while nobody writes there, was left by a process that was killed.
bool is_unfinished(const std::filesystem::path& path);

/// Removes such files of the folder, not of those below it. Does nothing else, and never fails.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace muster
