#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::test {

struct Outcome {
  int exit_code = -1;  ///< 128 + n after signal n
  double seconds = 0;
  std::string out{};
  std::string err{};
};

/// Runs a program with its arguments, without a shell; `environment` is added ("NAME=value").
Outcome run_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {});

/// Every file below `folder` but those the name of whose first part is in `without`: relative path
/// and content.
std::vector<std::pair<std::string, std::string>> files_of(const std::filesystem::path& folder,
                                                          const std::vector<std::string>& parts);

}  // namespace muster::test
