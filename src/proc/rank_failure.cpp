#include <muster/base/check.h>
#include <muster/base/env.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/base/redact.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "src/proc/crash_report_internal.h"
#include "src/proc/error_pipe_internal.h"
#include "src/proc/failure_record_internal.h"
#include "src/proc/verdict_internal.h"

namespace muster {

namespace {

// What the environment says, as far as it says anything: a failing rank must not fail over it.
RankEnv rank_env_or_default() {
  try {
    return rank_env().value_or(RankEnv{});
  } catch (const std::exception&) {
    return {};
  }
}

std::string indented_detail(const detail::FailureRecord& record) {
  std::string text;
  const auto add = [&text](const char* label, const std::string& value) {
    if (!value.empty()) {
      text += format("  {}{}\n", label, detail::shown(value));
    }
  };
  add("during ", record.phase);
  add("at ", record.source);
  add("error file ", record.error_file);
  return text;
}

void print_own_failure(const RankEnv& env, const detail::FailureRecord& record) {
  const std::string who = env.world_size > 1 ? format("rank {}: ", env.rank) : "";
  std::string text = format("muster: error: {}{}\n", who, detail::shown(record.message));
  if (record.code == static_cast<int>(ErrorKind::peer_lost)) {
    // Another rank tells why; this one is a consequence.
    text = format("muster: {}{}\n", who,
                  detail::shown(record.message.substr(0, record.message.find('\n'))));
  } else {
    text += indented_detail(record);
  }
  detail::write_all(STDERR_FILENO, text);
}

// Error file, then the launcher, then, without one, stderr.
void report(const RankFailure& failure) {
  detail::FailureRecord record{.code = failure.code,
                               .monotonic_ns = detail::monotonic_ns(),
                               .message = redact_text(failure.message),
                               .phase = failure.phase,
                               .source = failure.source};
  std::signal(SIGPIPE, SIG_IGN);
  const RankEnv env = rank_env_or_default();
  const std::string run_dir =
      failure.run_dir.empty() ? env_text("MUSTER_RUN_DIR").value_or("") : failure.run_dir;
  if (!run_dir.empty()) {
    record.error_file = detail::write_error_file(run_dir, env.rank, getpid(), record);
  }
  const auto pipe = detail::inherited_error_pipe();
  if (!pipe || !detail::write_all(*pipe, detail::encode(record))) {
    print_own_failure(env, record);
  }
}

[[noreturn]] void report_and_abort() {
  try {
    RankFailure failure{.message = "std::terminate was called without an exception"};
    if (const auto error = std::current_exception()) {
      failure = describe_failure(error);
      failure.message = "uncaught exception: " + failure.message;
    }
    failure.code = 128 + SIGABRT;
    report(failure);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing is left to be told
  }
  std::abort();
}

// Sleeps until the launcher's end of the pipe is closed, that is, until it has ended in whatever
// way.
void end_with_launcher(int pipe) {
  pollfd launcher{.fd = pipe, .events = 0, .revents = 0};
  while ((launcher.revents & POLLERR) == 0) {
    if (poll(&launcher, 1, -1) < 0 && errno != EINTR) {
      return;
    }
  }
  kill(0, SIGKILL);  // Its process group, that is, what the launcher would have killed.
}

}  // namespace

RankFailure describe_failure(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& muster_error) {
    return {.code = muster_error.exit_code(),
            .message = muster_error.what(),
            .source = to_string(muster_error.where())};
  } catch (const std::exception& other) {
    return {.message = other.what()};
  } catch (...) {
    return {.message = "an exception that is no std::exception"};
  }
}

void fail_rank(const RankFailure& failure) {
  try {
    report(failure);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the exit code still tells that it failed
  }
  std::fflush(nullptr);
  _exit(failure.code);
}

void install_terminate_handler() {
  std::set_terminate(report_and_abort);
  detail::install_crash_report();
}

void attach_to_launcher() {
  if (const auto store = env_text("MUSTER_STORE_FD")) {
    fcntl(std::atoi(store->c_str()), F_SETFD, FD_CLOEXEC);
  }
  const auto pipe = detail::inherited_error_pipe();
  if (!pipe) {
    return;
  }
  fcntl(*pipe, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_NAME, program_invocation_short_name);
  // The new thread inherits the mask: signals are for the threads that expect them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread{end_with_launcher, *pipe}.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void clear_error_files(const std::string& run_dir) { clear_error_files(run_dir, 0, 0); }

void clear_error_files(const std::string& run_dir, int rank, int world_size) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto folder = fs::path{run_dir} / "errors";
  for (auto entry = fs::directory_iterator{folder, ignored};
       !ignored && entry != fs::directory_iterator{}; entry.increment(ignored)) {
    const auto of_rank = detail::rank_of_error_file(entry->path().filename().string());
    if (of_rank && (*of_rank == rank || (rank == 0 && *of_rank >= world_size))) {
      std::error_code in_use;
      fs::remove(entry->path(), in_use);
    }
  }
  remove_if_empty(folder);
}

}  // namespace muster
