#pragma once

#include <filesystem>

namespace muster {

/// Keeps other commands out of a folder while it lives. It ends with the process, however that
/// ends, and leaves no file.
class FolderLock {
 public:
  /// Error of kind `usage` when another command has it. File systems without locks grant it.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_;
};

}  // namespace muster
