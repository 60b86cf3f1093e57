#pragma once

#include "support/temp_folder.h"
#include "support/texts.h"

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

/// Runs jobs of real processes with a fault planted, and looks at how they end.
namespace muster::test {

using Arguments = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

struct Scenario {
  int ranks = 2;
  /// As fault_program takes it: POINT:RANK:STEP:ACTION.
  std::string fault{};
  /// As syscalls_shim takes it.
  std::string shim{};
  /// More options of the program.
  Arguments options{};
  /// "NAME=value"
  Arguments environment{};
  /// A script of bash in which "$@" is the command; "": the command itself.
  std::string script{};
  /// "fit", "validate"
  std::string command = "fit";
  /// The name of the run folder.
  std::string run = "run";
};

struct Ended {
  int exit_code = -1;  ///< 128 + n after signal n
  Clock::time_point when{};
  std::string out{};
  std::string err{};
};

/// What must hold of a job that met a fault.
struct Expected {
  int exit_code = 0;
  /// Seconds from the fault to the end of the job's first process.
  double within_s = 5;
  /// An extended regular expression that stderr contains.
  std::string says{};
};

/// A job that runs. Its processes are known by the run folder, which all of them name.
class Job {
 public:
  Job(const std::filesystem::path& folder, const Scenario& scenario);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Of a rank; waits until it is there.
  [[nodiscard]] pid_t pid_of(int rank) const;
  [[nodiscard]] std::vector<pid_t> pids() const;
  /// Waits for a line of a rank, "step 5"; false after a while.
  [[nodiscard]] bool wait_for(int rank, const std::string& line) const;
  /// Sends a signal, which is the fault from where bounds count.
  void send(pid_t to, int signal);
  /// Waits; kills everything after `limit_s`.
  Ended finish(double limit_s = 60);
  /// When the fault came: what `send` did, or the first that a rank planted; else the start.
  [[nodiscard]] Clock::time_point fault_time() const;
  [[nodiscard]] std::vector<std::string> lines(int rank) const;

 private:
  std::filesystem::path marks_;
  std::string run_dir_;
  TempFolder output_;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> sent_{};
  pid_t pid_ = -1;
};

/// Of the fault program's `fit`.
Arguments command_of(const std::filesystem::path& folder, const Scenario& scenario);

/// A row: one job at least, in a folder of its own.
class Faults : public ::testing::Test {
 protected:
  [[nodiscard]] Job start(const Scenario& scenario) const { return Job{folder_.path(), scenario}; }
  /// Ends as expected, nothing of it is left, its newest checkpoint is whole, if it has one.
  Ended expect(Job& job, const Expected& expected) const;
  Ended expect(const Scenario& scenario, const Expected& expected) const;
  /// A training that meets no fault; the bytes of its last model.
  std::string whole_model(Scenario scenario) const;
  /// Goes on from the last checkpoint to the end; the bytes of its model.
  std::string resumed_model(Scenario scenario) const;
  [[nodiscard]] std::filesystem::path run_dir(const std::string& run = "run") const {
    return folder_ / run;
  }
  [[nodiscard]] std::string last_model(const std::string& run = "run") const;
  /// Names of whole checkpoints; a damaged one is a failure.
  [[nodiscard]] std::vector<std::string> checkpoints(const std::string& run = "run") const;
  [[nodiscard]] std::string error_file(int rank) const;

  TempFolder folder_;
};

/// The same; its rows are slow.
class FaultsSlow : public Faults {};

}  // namespace muster::test
