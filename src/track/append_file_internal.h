#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace muster::track {

/// A file that grows at its end, one write(2) a call, so that a reader never sees half of one
/// unless the process was killed inside it. What a failed write left is cut off again. A link is
/// not followed: Error of kind `output`, as for whatever cannot be opened.
class AppendFile {
 public:
  /// A new file; Error of kind `output` when there is one already.
  static AppendFile create(const std::filesystem::path& path);
  /// The end of an existing file.
  static AppendFile open(const std::filesystem::path& path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  void append(std::string_view bytes);
  /// Leaves the first `size` bytes.
  void cut(uint64_t size);
  /// Returns when the bytes are on the disk.
  void sync();
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  AppendFile(std::filesystem::path path, int flags);

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace muster::track
