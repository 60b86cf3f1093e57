#pragma once

#include <filesystem>
#include <string>

namespace muster {

/// Notes in the run folder whose `last` is from now on; "": nobody's that is known. Must not come
/// after the link.
void remember_training(const std::filesystem::path& run_dir, const std::string& id);

/// What was noted there; "": nothing that can be read.
std::string remembered_training(const std::filesystem::path& run_dir);

}  // namespace muster
