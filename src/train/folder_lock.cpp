#include "folder_lock_internal.h"

#include <muster/base/check.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace muster {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_{open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)} {
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return;
  }
  close(descriptor_);
  fail(ErrorKind::usage,
       "another command writes to {} now; wait for its end, or give another --run_dir",
       folder.string());
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

}  // namespace muster
