#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::app {

/// Where run folders lie: `keep`, which must not hold anything yet, or a temporary folder that goes
/// away with the object.
class CheckFolder {
 public:
  /// Error of kind `usage` when `keep` is in use.
  explicit CheckFolder(const std::filesystem::path& keep);
  CheckFolder(const CheckFolder&) = delete;
  CheckFolder& operator=(const CheckFolder&) = delete;
  ~CheckFolder();

  /// The run folder for that many ranks; what the program says goes to the file beside it.
  [[nodiscard]] std::filesystem::path run_dir(int ranks) const;
  [[nodiscard]] std::filesystem::path output(int ranks) const;

 private:
  std::filesystem::path path_;
  bool stays_;
};

/// Launches PROGRAM on that many ranks, with one line of progress on stderr, and returns its exit
/// code. When that is not 0 the end of what the program said has been shown.
int run_program(const std::vector<std::string>& program, const CheckFolder& folder, int ranks);

}  // namespace muster::app
