#include "tests/proc/job.h"

#include <fcntl.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/paths.h"

namespace muster::test {

namespace {

using namespace std::chrono_literals;

[[noreturn]] void become_launcher(const std::vector<std::string>& argv,
                                  const LaunchOptions& options,
                                  const std::filesystem::path& folder) {
  for (const auto& [fd, name] : {std::pair{STDOUT_FILENO, "out"}, {STDERR_FILENO, "err"}}) {
    const int file = open((folder / name).c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, fd);
  }
  try {
    _exit(launch(argv, options));
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    _exit(error.exit_code());
  }
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

template <typename Condition>
bool wait_until(Condition condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>{seconds};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

}  // namespace

Job::Job(const std::vector<std::string>& argv, const LaunchOptions& options)
    : start_{std::chrono::steady_clock::now()}, pid_{fork()} {
  if (pid_ == 0) {
    become_launcher(argv, options, folder_.path());
  }
}

Job::~Job() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

bool Job::wait_for_output(const std::string& text, int times) const {
  return wait_until(
      [&] { return count(read_file_if_there(folder_.path() / "out").value_or(""), text) >= times; },
      10);
}

JobResult Job::finish() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .seconds = passed.count(),
          .out = read_file_if_there(folder_.path() / "out").value_or(""),
          .err = read_file_if_there(folder_.path() / "err").value_or("")};
}

JobResult run_job(const std::vector<std::string>& argv, const LaunchOptions& options) {
  return Job{argv, options}.finish();
}

JobResult run_shell(const std::string& script, const LaunchOptions& options) {
  return run_job({"sh", "-c", script}, options);
}

std::string rank_program() { return bin_dir() / "test_proc_rank_program"; }

bool is_running(pid_t pid) {
  const auto status =
      read_file_if_there(std::filesystem::path{"/proc"} / std::to_string(pid) / "stat");
  if (!status) {
    return false;
  }
  const size_t name_end = status->rfind(')');  // "PID (NAME) STATE ..."
  return name_end != std::string::npos && (*status)[name_end + 2] != 'Z';
}

bool all_gone(const std::vector<pid_t>& pids, double seconds) {
  return wait_until([&] { return std::none_of(pids.begin(), pids.end(), is_running); }, seconds);
}

}  // namespace muster::test
