// A library for LD_PRELOAD in which a system call fails, or ends the process.
// MUSTER_SHIM=CALL:PART:N:ACTION, where CALL is write, fsync, rename, symlink, unlink, mkdir, open
// (to create), any of these, or fork (PART is then -); PART is in the path; N is the how manieth
// such call counts from 1, "N+" it and all that follow; ACTION is kill, slow (200 ms more), or the
// name of an errno. Only rank 0, or a process without a rank, is meant.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Plan {
  bool on = false;
  char call[16] = "";
  char part[256] = "";
  long first = 0;
  bool further = false;
  char action[16] = "";
};

Plan make_plan() {
  Plan plan;
  const char* text = std::getenv("MUSTER_SHIM");
  const char* rank = std::getenv("RANK");
  char number[16] = "";
  if (text == nullptr || (rank != nullptr && std::strcmp(rank, "0") != 0)) return plan;
  plan.on = std::sscanf(text, "%15[^:]:%255[^:]:%15[^:]:%15s", plan.call, plan.part, number,
                        plan.action) == 4;
  plan.first = std::strtol(number, nullptr, 10);
  plan.further = std::strchr(number, '+') != nullptr;
  return plan;
}

const Plan& plan() {
  static const Plan made = make_plan();
  return made;
}

int errno_of(const char* name) {
  if (std::strcmp(name, "ENOSPC") == 0) return ENOSPC;
  if (std::strcmp(name, "EROFS") == 0) return EROFS;
  if (std::strcmp(name, "EACCES") == 0) return EACCES;
  if (std::strcmp(name, "EAGAIN") == 0) return EAGAIN;
  return EIO;
}

/// Whether this call is to fail, with errno set; it may not return.
bool fails(const char* call, const char* path) {
  static std::atomic<long> count{0};
  const Plan& p = plan();
  if (!p.on || (std::strcmp(p.call, call) != 0 &&
                (std::strcmp(p.call, "any") != 0 || std::strcmp(call, "fork") == 0))) {
    return false;
  }
  if (std::strstr(path, p.part) == nullptr) return false;
  const long number = ++count;
  if (number != p.first && (!p.further || number < p.first)) return false;
  if (std::strcmp(p.action, "kill") == 0) kill(getpid(), SIGKILL);
  if (std::strcmp(p.action, "slow") == 0) {
    usleep(200'000);
    return false;
  }
  errno = errno_of(p.action);
  return true;
}

bool fails(const char* call, int fd) {
  if (!plan().on) return false;
  char link[64];
  char path[1024] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) path[length] = '\0';
  return fails(call, path);
}

template <typename Function>
Function next(const char* name, Function /*type*/) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto real = next("write", &write);
  return fails("write", fd) ? -1 : real(fd, bytes, size);
}
int fsync(int fd) {
  static const auto real = next("fsync", &fsync);
  return fails("fsync", fd) ? -1 : real(fd);
}
int rename(const char* from, const char* to) noexcept {
  static const auto real = next("rename", &rename);
  return fails("rename", to) ? -1 : real(from, to);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  static const auto real = next("renameat2", &renameat2);
  return fails("rename", to) ? -1 : real(from_at, from, to_at, to, flags);
}
int symlink(const char* target, const char* path) noexcept {
  static const auto real = next("symlink", &symlink);
  return fails("symlink", path) ? -1 : real(target, path);
}
int unlink(const char* path) noexcept {
  static const auto real = next("unlink", &unlink);
  return fails("unlink", path) ? -1 : real(path);
}
int unlinkat(int at, const char* path, int flags) noexcept {
  static const auto real = next("unlinkat", &unlinkat);
  const bool failed = path[0] == '/' ? fails("unlink", path) : fails("unlink", at);
  return failed ? -1 : real(at, path, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next("mkdir", &mkdir);
  return fails("mkdir", path) ? -1 : real(path, mode);
}
int open(const char* path, int flags, ...) {
  static const auto real = next("open", &open);
  std::va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return (flags & O_CREAT) != 0 && fails("open", path) ? -1 : real(path, flags, mode);
}
pid_t fork() noexcept {
  static const auto real = next("fork", &fork);
  return fails("fork", "-") ? -1 : real();
}
}
