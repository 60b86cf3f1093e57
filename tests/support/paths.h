#pragma once

#include <filesystem>

namespace muster::test {

/// Where the built programs lie (build/<preset>/bin).
std::filesystem::path bin_dir();

/// The repository's tests/ folder, where tests keep their data.
std::filesystem::path tests_dir();

}  // namespace muster::test
