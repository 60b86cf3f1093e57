#include "faults/job.h"

#include "support/paths.h"

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/io/checkpoint_folder.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace muster::test {

namespace fs = std::filesystem;

namespace {

std::vector<pid_t> processes_that_name(const std::string& text) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator{"/proc"}) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string line;
    try {
      line = read_file_if_there(entry.path() / "cmdline").value_or("");
    } catch (const std::exception&) {
      continue;  // It ended just now.
    }
    if (line.find(text) != std::string::npos) found.push_back(std::stoi(pid));
  }
  return found;
}

bool wait_until(const std::function<bool()>& condition, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{3});
  }
  return true;
}

/// 1 on a machine that is not busier than it has cores.
double slowness() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return 1;
  return std::max(1.0, load / std::max(1U, std::thread::hardware_concurrency()));
}

pid_t start_process(const Arguments& arguments, const Arguments& environment,
                    const fs::path& output) {
  Arguments texts = arguments;
  std::vector<char*> argv;
  argv.reserve(texts.size() + 1);
  for (auto& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  Arguments variables = environment;
  std::vector<char*> envp;
  for (auto& variable : variables) envp.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  constexpr int flags = O_CREAT | O_WRONLY | O_APPEND;
  posix_spawn_file_actions_addopen(&actions, 1, (output / "out").c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, (output / "err").c_str(), flags, 0600);
  // A shell ignores SIGINT for what runs in its background, and nohup SIGHUP.
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigfillset(&usual);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw std::runtime_error{"cannot start " + arguments.at(0)};
  return pid;
}

}  // namespace

Arguments command_of(const fs::path& folder, const Scenario& scenario) {
  const std::string run_dir = folder / scenario.run;
  Arguments command{bin_dir() / "test_faults_fault_program",
                    scenario.command,
                    "--run_dir",
                    run_dir,
                    "--model.marks",
                    folder / (scenario.run + "-marks")};
  for (const auto* off : {"logger", "enable_progress_bar", "enable_model_summary"}) {
    command.insert(command.end(), {std::string{"--trainer."} + off, "false"});
  }
  if (scenario.ranks > 1) {
    command.insert(command.end(), {"--devices", std::to_string(scenario.ranks)});
  }
  command.insert(command.end(), scenario.options.begin(), scenario.options.end());
  return command;
}

Job::Job(const fs::path& folder, const Scenario& scenario)
    : marks_{folder / (scenario.run + "-marks")}, run_dir_{folder / scenario.run} {
  fs::create_directories(marks_);
  Arguments environment = scenario.environment;
  if (!scenario.fault.empty()) environment.push_back("MUSTER_FAULT=" + scenario.fault);
  // Under AddressSanitizer: the shim may come before it, and the product sees its own crashes.
  environment.emplace_back("ASAN_OPTIONS=verify_asan_link_order=0:handle_segv=0");
  if (!scenario.shim.empty()) {
    environment.push_back("MUSTER_SHIM=" + scenario.shim);
    environment.push_back("LD_PRELOAD=" + (bin_dir() / "libtest_faults_syscalls_shim.so").string());
  }
  Arguments command = command_of(folder, scenario);
  if (!scenario.script.empty())
    command.insert(command.begin(), {"bash", "-c", scenario.script, "bash"});
  pid_ = start_process(command, environment, output_.path());
}

Job::~Job() {
  for (const pid_t pid : pids()) kill(pid, SIGKILL);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

std::vector<pid_t> Job::pids() const { return processes_that_name(run_dir_); }

pid_t Job::pid_of(int rank) const {
  const std::string variable = "RANK=" + std::to_string(rank);
  pid_t found = -1;
  wait_until(
      [&] {
        for (const pid_t pid : pids()) {
          std::string environment{'\0'};
          try {
            environment += read_file_if_there(format("/proc/{}/environ", pid)).value_or("");
          } catch (const std::exception&) {
            continue;
          }
          if (environment.find('\0' + variable + '\0') != std::string::npos) found = pid;
        }
        return found > 0;
      },
      20);
  return found;
}

std::vector<std::string> Job::lines(int rank) const {
  std::istringstream stream{
      read_file_if_there(marks_ / ("rank-" + std::to_string(rank))).value_or("")};
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

bool Job::wait_for(int rank, const std::string& line) const {
  return wait_until(
      [&] {
        const auto all = lines(rank);
        return std::find(all.begin(), all.end(), line) != all.end();
      },
      40);
}

void Job::send(pid_t to, int signal) {
  ASSERT_GT(to, 1);  // -1 would be every process of the machine
  if (!sent_) sent_ = Clock::now();
  kill(to, signal);
}

Ended Job::finish(double limit_s) {
  const auto limit = Clock::now() + std::chrono::duration<double>{limit_s};
  int status = 0;
  bool killed = false;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > limit && !std::exchange(killed, true)) {
      ADD_FAILURE() << "the job has not ended after " << limit_s << " s";
      for (const pid_t pid : pids()) kill(pid, SIGKILL);
      kill(pid_, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  pid_ = -1;
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .when = Clock::now(),
          .out = read_file(output_ / "out"),
          .err = read_file(output_ / "err")};
}

Clock::time_point Job::fault_time() const {
  if (sent_) return *sent_;
  auto first = Clock::time_point::max();
  for (int rank = 0; rank < 8; ++rank) {
    for (const auto& line : lines(rank)) {
      if (!line.starts_with("fault ")) continue;
      const std::chrono::nanoseconds time{std::stoll(line.substr(line.rfind(' ') + 1))};
      first = std::min(first, Clock::time_point{time});
    }
  }
  return first == Clock::time_point::max() ? start_ : first;
}

Ended Faults::expect(Job& job, const Expected& expected) const {
  Ended ended = job.finish();
  EXPECT_EQ(ended.exit_code, expected.exit_code) << ended.err;
  const std::chrono::duration<double> taken = ended.when - job.fault_time();
  EXPECT_LT(taken.count(), expected.within_s * slowness());
  if (!expected.says.empty()) {
    EXPECT_TRUE(says(ended.err, expected.says));
  }
  // Where the launcher itself was killed its ranks have two seconds.
  EXPECT_TRUE(wait_until([&] { return job.pids().empty(); }, 2 * slowness()));
  if (fs::exists(run_dir() / "checkpoints/last.ckpt")) {
    EXPECT_NO_THROW(static_cast<void>(read_checkpoint(run_dir() / "checkpoints/last.ckpt")));
  }
  return ended;
}

Ended Faults::expect(const Scenario& scenario, const Expected& expected) const {
  Job job{folder_.path(), scenario};
  return expect(job, expected);
}

std::string Faults::whole_model(Scenario scenario) const {
  scenario.run = "whole";
  scenario.fault = scenario.shim = "";
  Job job{folder_.path(), scenario};
  const Ended ended = job.finish();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return last_model("whole");
}

std::string Faults::resumed_model(Scenario scenario) const {
  scenario.fault = scenario.shim = "";
  scenario.options.insert(scenario.options.end(), {"--ckpt_path", "last"});
  Job job{folder_.path(), scenario};
  const Ended ended = job.finish();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return last_model(scenario.run);
}

std::string Faults::last_model(const std::string& run) const {
  return read_file_if_there(run_dir(run) / "checkpoints/last.ckpt/model.safetensors").value_or("");
}

std::vector<std::string> Faults::checkpoints(const std::string& run) const {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator{run_dir(run) / "checkpoints", none}) {
    const std::string name = entry.path().filename();
    if (entry.is_symlink() || name.starts_with('.') || !name.ends_with(".ckpt")) continue;
    EXPECT_NO_THROW(static_cast<void>(read_checkpoint(entry.path()))) << name;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Faults::error_file(int rank) const {
  return read_file_if_there(run_dir() / format("errors/rank-{}.json", rank)).value_or("");
}

}  // namespace muster::test
