#include "src/proc/spawn_internal.h"

#include <muster/base/check.h>
#include <muster/base/env.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>

#include "src/proc/port_holder_internal.h"

namespace muster::detail {

namespace {

std::string error_text(int error) { return std::generic_category().message(error); }

bool is_program(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));  // NOLINT: execve's C signature; it reads
  }
  result.push_back(nullptr);
  return result;
}

struct Image {
  const char* path;
  char* const* argv;
  char* const* environment;
};

// Between fork and exec: system calls only, since another thread may have held any lock.
[[noreturn]] void become(const SpawnRequest& request, const Image& image, pid_t launcher,
                         int report) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It asks to save, and must not end a rank that is not there yet, or does not know it.
  signal(SIGUSR1, SIG_IGN);
  if (getppid() != launcher) {
    _exit(1);  // It died before the line above could count.
  }
  bool ready = request.stdin_fd < 0 || dup2(request.stdin_fd, STDIN_FILENO) >= 0;
  for (const int fd : request.passed) {
    ready = ready && fcntl(fd, F_SETFD, 0) == 0;
  }
  if (ready && sigprocmask(SIG_SETMASK, &request.signal_mask, nullptr) == 0) {
    execve(image.path, image.argv, image.environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

// The errno that the child sent, 0 when its exec has closed the pipe.
int wait_for_exec(const Descriptor& report) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(report.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

}  // namespace

Pipe make_pipe() {
  std::array<int, 2> ends{};
  const int result = pipe2(ends.data(), O_CLOEXEC);
  check(result == 0, ErrorKind::output, "cannot make a pipe: {}", error_text(errno));
  return {Descriptor{ends[0]}, Descriptor{ends[1]}};
}

Descriptor listen_on_loopback(int port) {
  Descriptor listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  // A port whose last connections are in TIME_WAIT is free; one that is listened on stays taken.
  const bool ok =
      listener && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      listen(listener.get(), SOMAXCONN) == 0;
  if (!ok) {
    const std::string reason = error_text(errno);
    const std::string holder = port != 0 ? port_holder(port) : "";
    fail(ErrorKind::rendezvous, "cannot listen on 127.0.0.1 port {}: {}{}", port, reason,
         holder.empty() ? "" : "; it is " + holder + "'s");
  }
  return listener;
}

int port_of(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return name;
  }
  std::istringstream folders{env_text("PATH").value_or("/usr/local/bin:/usr/bin:/bin")};
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(path)) {
      return path;
    }
  }
  fail(ErrorKind::output, "cannot run '{}': no such program in any folder of PATH", name);
}

pid_t spawn(const SpawnRequest& request) {
  Pipe report = make_pipe();
  const auto argv = pointers(request.argv);
  const auto environment = pointers(request.environment);
  const Image image{request.path.c_str(), argv.data(), environment.data()};
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become(request, image, launcher, report.write.get());
  }
  check(pid > 0, ErrorKind::output, "cannot start a process for '{}': {}", request.path,
        error_text(errno));
  report.write.reset();
  const int error = wait_for_exec(report.read);
  if (error != 0) {
    waitpid(pid, nullptr, 0);
    fail(ErrorKind::output, "cannot run '{}': {}", request.path, error_text(error));
  }
  return pid;
}

}  // namespace muster::detail
