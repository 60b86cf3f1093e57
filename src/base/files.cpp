#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/unfinished.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_with(ErrorKind kind, std::string_view what, const fs::path& path,
                            int error) {
  fail(kind, "cannot {} {}: {}", what, path.native(), std::generic_category().message(error));
}

/// What a failed attempt to create or write means: a disk that is full or broken, or a wrong place.
ErrorKind output_kind(int error) {
  const bool device = error == ENOSPC || error == EDQUOT || error == EIO || error == EFBIG;
  return device ? ErrorKind::io : ErrorKind::output;
}

[[noreturn]] void fail_full(const fs::path& path, int error, size_t needed) {
  std::error_code unknown;
  const auto space = fs::space(path.has_parent_path() ? path.parent_path() : ".", unknown);
  fail(ErrorKind::io, "cannot write {}: {}; it needs {} bytes more, and {} are free", path.native(),
       std::generic_category().message(error), needed, unknown ? 0 : space.available);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_{fd} {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_;
};

int open_retrying(const fs::path& path, int flags) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// For reading; closed where there is no such file, and then errno says so.
Descriptor open_if_there(const fs::path& path, int flags) {
  const int fd = open_retrying(path, O_RDONLY | flags);
  if (fd < 0 && errno != ENOENT && errno != ENOTDIR) {
    fail_with(ErrorKind::data, "read", path, errno);
  }
  return Descriptor{fd};
}

/// The next bytes of a file that is read, 0 at its end.
size_t read_some(const Descriptor& file, const fs::path& path, char* into, size_t most) {
  while (true) {
    const ssize_t got = read(file.get(), into, most);
    if (got >= 0) {
      return static_cast<size_t>(got);
    }
    if (errno != EINTR) {
      fail_with(ErrorKind::data, "read", path, errno);
    }
  }
}

std::string read_open_file(const Descriptor& file, const fs::path& path, uint64_t max_bytes) {
  struct stat about {};
  const bool known = fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode);
  const uint64_t expected = known ? static_cast<uint64_t>(about.st_size) : 0;
  std::string content;
  size_t filled = 0;
  while (filled <= max_bytes && expected <= max_bytes) {
    if (filled == content.size()) {
      // One byte more than expected, so that the end shows without growing; /proc says 0 of all
      // sizes.
      const auto step =
          std::max<uint64_t>({expected > filled ? expected - filled : 0, filled, 4095});
      content.resize(filled + std::min(step, max_bytes - filled) + 1);
    }
    const size_t got = read_some(file, path, content.data() + filled, content.size() - filled);
    if (got == 0) {
      content.resize(filled);
      return content;
    }
    filled += got;
  }
  fail(ErrorKind::data, "{} has more than the {} bytes that are read of such a file", path.native(),
       max_bytes);
}

constexpr std::string_view unfinished_ending = ".part";
constexpr size_t unfinished_digits = 16;

/// A file that gets its name when it is complete, and is removed when it never is.
class PartFile {
 public:
  explicit PartFile(fs::path target) : target_{std::move(target)}, file_{create()} {
    if (!file_.is_open()) {
      fail_with(output_kind(errno), "create", target_, errno);
    }
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile() {
    if (!part_.empty()) {
      unlink(part_.c_str());
    }
  }

  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && (errno == ENOSPC || errno == EDQUOT)) {
        fail_full(target_, errno, bytes.size());
      }
      if (written < 0 && errno != EINTR) {
        fail_with(ErrorKind::io, "write", target_, errno);
      }
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
    }
  }

  void commit(Durability durability) {
    if (durability == Durability::power_cut) {
      sync();
    }
    if (rename(part_.c_str(), target_.c_str()) != 0) {
      fail_with(output_kind(errno), "create", target_, errno);
    }
    part_.clear();
    if (durability == Durability::power_cut) {
      // The new name survives a power cut only with its folder; not every file system can do that.
      const Descriptor folder{open_retrying(folder_of(target_), O_RDONLY | O_DIRECTORY)};
      if (folder.is_open()) {
        fsync(folder.get());
      }
    }
  }

  static fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path{"."};
  }

 private:
  void sync() {
    int synced = 0;
    do {
      synced = fsync(file_.get());
    } while (synced != 0 && errno == EINTR);
    if (synced != 0 &&
        errno != EINVAL) {  // EINVAL: what lies there has no fsync, a pipe for example
      fail_with(ErrorKind::io, "write", target_, errno);
    }
  }

  int create() {
    std::random_device random;
    int fd = -1;
    do {
      part_ = folder_of(target_) / format(".{:08x}{:08x}{}", random(), random(), unfinished_ending);
      fd = open_retrying(part_, O_WRONLY | O_CREAT | O_EXCL);
    } while (fd < 0 && errno == EEXIST);
    const int error = errno;
    if (fd < 0) {
      part_.clear();
    }
    errno = error;
    return fd;
  }

  fs::path target_;
  fs::path part_;
  Descriptor file_;
};

void copy_bytes(const fs::path& source, const fs::path& target) {
  const Descriptor from{open_retrying(source, O_RDONLY)};
  if (!from.is_open()) {
    fail_with(ErrorKind::data, "read", source, errno);
  }
  PartFile to{target};
  std::string buffer(size_t{1} << 20U, '\0');
  while (const size_t got = read_some(from, source, buffer.data(), buffer.size())) {
    to.append(std::string_view{buffer}.substr(0, got));
  }
  to.commit(Durability::power_cut);
}

}  // namespace

std::string read_file(const fs::path& path, uint64_t max_bytes) {
  auto content = read_file_if_there(path, max_bytes);
  if (!content) {
    fail_with(ErrorKind::data, "read", path, errno);
  }
  return *std::move(content);
}

std::optional<std::string> read_file_if_there(const fs::path& path, uint64_t max_bytes) {
  // Opening a pipe would wait for somebody who writes to it.
  const Descriptor file = open_if_there(path, O_NONBLOCK);
  if (!file.is_open()) {
    return std::nullopt;
  }
  struct stat about {};
  const bool endless = fstat(file.get(), &about) == 0 && !S_ISREG(about.st_mode) &&
                       !S_ISDIR(about.st_mode);  // which reading refuses in its own words
  check(!endless, ErrorKind::data, "cannot read {}: it is no regular file", path.native());
  return read_open_file(file, path, max_bytes);
}

std::optional<std::string> read_input_if_there(const fs::path& path, uint64_t max_bytes) {
  const Descriptor file = open_if_there(path, 0);
  if (!file.is_open()) {
    return std::nullopt;
  }
  return read_open_file(file, path, max_bytes);
}

void write_file_atomically(const fs::path& path, std::string_view content, Durability durability) {
  make_folder(PartFile::folder_of(path));
  PartFile file{path};
  file.append(content);
  file.commit(durability);
}

void link_or_copy(const fs::path& source, const fs::path& target) {
  make_folder(PartFile::folder_of(target));
  if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) == 0 ||
      errno == EEXIST) {
    return;
  }
  copy_bytes(source, target);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) {
    return;
  }
  const int code = error ? error.value() : ENOTDIR;
  fail_with(output_kind(code), "create the folder", path, code);
}

bool is_unfinished(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() == 1 + unfinished_digits + unfinished_ending.size() && name.front() == '.' &&
         name.ends_with(unfinished_ending) &&
         name.find_first_not_of("0123456789abcdef", 1) == 1 + unfinished_digits;
}

void remove_unfinished(const fs::path& folder) {
  std::error_code ignored;
  for (auto entry = fs::directory_iterator{folder, ignored};
       !ignored && entry != fs::directory_iterator{}; entry.increment(ignored)) {
    if (is_unfinished(entry->path())) {
      unlink(entry->path().c_str());
    }
  }
}

void remove_if_empty(const fs::path& folder) { rmdir(folder.c_str()); }

}  // namespace muster
