#include "src/proc/error_pipe_internal.h"

#include <muster/base/env.h>
#include <muster/base/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace muster::detail {

std::string descriptor_variable(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    return "";
  }
  return format("{}:{}", fd, status.st_ino);
}

std::optional<int> inherited_error_pipe() {
  const auto variable = env_text("MUSTER_ERROR_FD");
  if (!variable) {
    return std::nullopt;
  }
  const int fd = std::atoi(variable->c_str());
  struct stat status {};
  const bool same =
      fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && descriptor_variable(fd) == *variable;
  return same ? std::optional{fd} : std::nullopt;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(written < 0 ? 0 : static_cast<size_t>(written));
  }
  return true;
}

}  // namespace muster::detail
