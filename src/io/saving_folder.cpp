#include "src/io/saving_folder_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view mark = ".saving-";
constexpr size_t digits = 16;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path{"."};
}

bool is_unfinished(std::string_view name) {
  return name.starts_with('.') && name.size() > mark.size() + digits &&
         name.substr(name.size() - digits - mark.size(), mark.size()) == mark &&
         name.find_first_not_of("0123456789abcdef", name.size() - digits) == std::string_view::npos;
}

int open_folder(const fs::path& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/// Makes new names in `path` survive a power cut; not every file system can do that.
void sync_folder(const fs::path& path) {
  const int fd = open_folder(path);
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
}

/// Whether a living process holds the lock of an unfinished folder.
bool is_in_use(const fs::path& path) {
  const int fd = open_folder(path);
  if (fd < 0) {
    return false;
  }
  const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return taken;
}

void remove_unfinished(const fs::path& parent) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator at{parent, error}; !error && at != fs::directory_iterator{};
       at.increment(error)) {
    if (is_unfinished(at->path().filename().native())) {
      stale.push_back(at->path());
    }
  }
  for (const auto& path : stale) {
    if (!is_in_use(path)) {
      fs::remove_all(path, error);
    }
  }
}

}  // namespace

void fail_output(const char* what, const fs::path& path, int error) {
  const bool device = error == ENOSPC || error == EDQUOT || error == EIO;
  fail(device ? ErrorKind::io : ErrorKind::output, "cannot {} {}: {}", what, path.native(),
       std::generic_category().message(error));
}

fs::path unfinished_name(const fs::path& target) {
  std::random_device random;
  fs::path path;
  std::error_code ignored;
  do {
    path = folder_of(target) /
           format(".{}{}{:08x}{:08x}", target.filename().native(), mark, random(), random());
  } while (fs::exists(fs::symlink_status(path, ignored)));
  return path;
}

SavingFolder::SavingFolder(fs::path target) : target_{std::move(target)} {
  std::error_code ignored;
  const auto there = fs::symlink_status(target_, ignored);
  check(!fs::exists(there) || fs::is_directory(there), ErrorKind::output,
        "cannot write {}: there is something that is no folder: remove it", target_.native());
  make_folder(folder_of(target_));
  remove_unfinished(folder_of(target_));
  path_ = unfinished_name(target_);
  if (mkdir(path_.c_str(), 0777) != 0) {
    fail_output("create the folder", target_, errno);
  }
  lock_ = open_folder(path_);
  if (lock_ >= 0) {
    flock(lock_, LOCK_EX | LOCK_NB);
  }
}

SavingFolder::~SavingFolder() {
  std::error_code ignored;
  if (!path_.empty()) {
    fs::remove_all(path_, ignored);
  }
  if (lock_ >= 0) {
    close(lock_);
  }
}

void SavingFolder::commit() {
  sync_folder(path_);
  std::error_code ignored;
  if (fs::exists(target_, ignored)) {
    replace();
  } else if (rename(path_.c_str(), target_.c_str()) != 0) {
    fail_output("create", target_, errno);
  } else {
    path_.clear();
  }
  sync_folder(folder_of(target_));
}

/// Leaves what was there under the unfinished name, to be removed.
void SavingFolder::replace() {
  if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
    return;
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
    fail_output("replace", target_, errno);
  }
  const fs::path old = unfinished_name(target_);
  if (rename(target_.c_str(), old.c_str()) != 0) {
    fail_output("replace", target_, errno);
  }
  if (rename(path_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    rename(old.c_str(), target_.c_str());
    fail_output("replace", target_, error);
  }
  path_ = old;
}

void rename_for_good(const fs::path& from, const fs::path& target) {
  if (rename(from.c_str(), target.c_str()) != 0) {
    const int error = errno;
    unlink(from.c_str());
    fail_output("create", target, error);
  }
  sync_folder(folder_of(target));
}

}  // namespace muster
