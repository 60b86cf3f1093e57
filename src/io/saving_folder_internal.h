#pragma once

#include <filesystem>
#include <string>

namespace muster {

/// A name beside `target` that says that it is unfinished, and is not there yet.
std::filesystem::path unfinished_name(const std::filesystem::path& target);

/// A folder that gets its name when it is complete, and is removed when it never is.
class SavingFolder {
 public:
  /// Makes the folder, and those above `target`. Removes what dead processes left beside it: a lock
  /// on each tells whether somebody still writes there.
  explicit SavingFolder(std::filesystem::path target);
  SavingFolder(const SavingFolder&) = delete;
  SavingFolder& operator=(const SavingFolder&) = delete;
  ~SavingFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Renames it to the target, in the place of a folder that is there.
  void commit();

 private:
  void replace();

  std::filesystem::path target_;
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Renames a file or link to `target` for good. Error of kind `output` or `io`; `from` is gone
/// then.
void rename_for_good(const std::filesystem::path& from, const std::filesystem::path& target);

/// Error of kind `output`, or `io` for a disk that is full or broken: "cannot WHAT PATH: ...".
[[noreturn]] void fail_output(const char* what, const std::filesystem::path& path, int error);

}  // namespace muster
