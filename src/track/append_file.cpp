#include "src/track/append_file_internal.h"

#include <fcntl.h>
#include <muster/base/check.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace muster::track {

namespace {

std::string reason() { return std::generic_category().message(errno); }

std::string why_not_opened(const std::filesystem::path& path, int error) {
  std::error_code unknown;
  return std::filesystem::is_symlink(path, unknown)
             ? "it is a link, which Muster does not write through; remove it, or give another run "
               "folder"
             : std::generic_category().message(error);
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, int flags) : path_{std::move(path)} {
  // A pipe in its place would keep everything waiting, and a link may lead to anybody's file.
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags,
               0666);
  check(fd_ >= 0, ErrorKind::output, "cannot write to {}: {}", path_.string(),
        why_not_opened(path_, errno));
  struct stat info {};
  const bool known = ::fstat(fd_, &info) == 0;  // before errno is read
  check(known, ErrorKind::io, "cannot examine {}: {}", path_.string(), reason());
  size_ = static_cast<uint64_t>(info.st_size);
}

AppendFile AppendFile::create(const std::filesystem::path& path) {
  return AppendFile{path, O_CREAT | O_EXCL};
}

AppendFile AppendFile::open(const std::filesystem::path& path) { return AppendFile{path, 0}; }

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_{std::move(other.path_)}, fd_{std::exchange(other.fd_, -1)}, size_{other.size_} {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

void AppendFile::append(std::string_view bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const auto written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      const std::string why = reason();
      const bool whole = ::ftruncate(fd_, static_cast<off_t>(size_)) == 0;
      fail(ErrorKind::io, "cannot write {} bytes to {}: {}{}", bytes.size(), path_.string(), why,
           whole ? "" : "; its end is torn");
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += bytes.size();
}

void AppendFile::cut(uint64_t size) {
  const bool done = ::ftruncate(fd_, static_cast<off_t>(size)) == 0;  // before errno is read
  check(done, ErrorKind::io, "cannot cut {} to {} bytes: {}", path_.string(), size, reason());
  size_ = size;
}

void AppendFile::sync() {
  const bool synced = ::fsync(fd_) == 0;  // before errno is read
  check(synced, ErrorKind::io, "cannot bring {} to the disk: {}", path_.string(), reason());
}

}  // namespace muster::track
