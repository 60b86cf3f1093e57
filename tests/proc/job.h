#pragma once

#include <muster/proc/launch.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/temp_folder.h"

namespace muster::test {

struct JobResult {
  int exit_code = -1;
  int signal = 0;      ///< that ended the launcher
  double seconds = 0;  ///< from start to end
  std::string out{};   ///< stdout of the job
  std::string err{};   ///< stderr of the job
};

/// A launcher in a process of its own. Its exit code is launch's; an Error is printed and gives its
/// code.
class Job {
 public:
  explicit Job(const std::vector<std::string>& argv, const LaunchOptions& options = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits until stdout holds `text` this many times; false after 10 s.
  [[nodiscard]] bool wait_for_output(const std::string& text, int times) const;
  JobResult finish();

 private:
  TempFolder folder_;
  std::chrono::steady_clock::time_point start_;
  pid_t pid_ = -1;
};

JobResult run_job(const std::vector<std::string>& argv, const LaunchOptions& options = {});
/// sh -c SCRIPT on each rank.
JobResult run_shell(const std::string& script, const LaunchOptions& options = {});

/// The helper that acts as a rank.
std::string rank_program();

/// Whether the process exists and is no zombie.
bool is_running(pid_t pid);

/// Waits up to `seconds` until none of `pids` runs.
bool all_gone(const std::vector<pid_t>& pids, double seconds);

}  // namespace muster::test
