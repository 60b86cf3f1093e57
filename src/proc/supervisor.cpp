#include "src/proc/supervisor_internal.h"

#include <muster/base/error.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "src/proc/session_internal.h"

namespace muster::detail {

namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

// After a failure the others have this long to report one of their own, which may be the earlier
// one.
constexpr auto settle_time = milliseconds{250};
// After "peer lost" the cause itself is still to come.
constexpr auto peer_settle_time = milliseconds{1000};
// For the system to end a process after SIGKILL.
constexpr auto kill_time = milliseconds{1500};
// Where the system has no pidfd (before Linux 5.3).
constexpr int poll_without_pidfd_ms = 20;

// By number: the header of glibc 2.36 declares the function with C++ linkage.
Descriptor open_pidfd(pid_t pid) {
  return Descriptor{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))};
}

// The error file of a rank that could not write one: a signal ended it, or it is no program of
// Muster's.
FailureRecord write_for(const RankOutcome& outcome, const std::string& stack,
                        const std::string& run_dir) {
  FailureRecord record{.code = code_of(outcome),
                       .monotonic_ns = outcome.ended_ns,
                       .message = how_it_ended(outcome),
                       .phase = outcome.last_seen};
  record.error_file = write_error_file(run_dir, outcome.rank, outcome.pid, record, stack);
  record.phase.clear();
  record.message.clear();  // The headline says it already.
  return record;
}

}  // namespace

RankProcess::RankProcess(int rank, pid_t pid, Descriptor pipe, SharedPlace shared)
    : ended{open_pidfd(pid)}, errors{std::move(pipe)}, place{std::move(shared)} {
  outcome.rank = rank;
  outcome.pid = pid;
}

void RankProcess::read_errors() {
  std::array<char, 4096> block{};
  ssize_t got = 0;
  while (errors && (got = read(errors.get(), block.data(), block.size())) > 0) {
    // What comes beyond is dropped: the rank must not block on it.
    if (received.size() < 2 * max_record_bytes) {
      received.append(block.data(), static_cast<size_t>(got));
    }
  }
  if (got == 0) {
    errors.reset();  // No writer is left.
  }
  RankWords words = parse_words(received);
  outcome.begun = words.begun;
  outcome.finished = words.ended;
  stop_signal = words.stop_signal;
  stack = std::move(words.stack);
  if (!outcome.record && words.record) {
    outcome.record = std::move(words.record);
    outcome.record->monotonic_ns = std::min(outcome.record->monotonic_ns, monotonic_ns());
  }
}

void RankProcess::look_for_end() {
  siginfo_t info{};
  const auto id = static_cast<id_t>(outcome.pid);
  if (outcome.ended || waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return;
  }
  outcome.ended = true;
  outcome.ended_ns = monotonic_ns();
  (info.si_code == CLD_EXITED ? outcome.exit_code : outcome.signal) = info.si_status;
  ended.reset();
  read_errors();
}

Supervisor::~Supervisor() {
  // Their groups too: a rank's own children may be left. The zombies keep the ids from being used
  // again.
  for (const auto& rank : ranks_) {
    kill(-rank.outcome.pid, SIGKILL);
  }
  for (const auto& rank : ranks_) {
    waitpid(rank.outcome.pid, nullptr, stage_ == Stage::abandoned ? WNOHANG : 0);
  }
}

Verdict Supervisor::run() {
  while (any_running() && stage_ != Stage::abandoned) {
    wait();
    while (const int signal = signals_.take()) {
      note_stop(signal);
    }
    for (auto& rank : ranks_) {
      const bool told = rank.outcome.record.has_value();
      const bool ended = rank.outcome.ended;
      rank.read_errors();
      rank.look_for_end();
      if (rank.stop_signal != 0 && stage_ == Stage::running) {
        note_stop(rank.stop_signal);
      }
      if (told != rank.outcome.record.has_value() || ended != rank.outcome.ended) {
        note_rank(rank);
      }
    }
    advance();
  }
  wait_for_programs();
  return verdict();
}

void Supervisor::wait_for_programs() {
  const auto may_have_left_one = [](const RankProcess& rank) {
    return rank.outcome.told_to_stop && rank.outcome.signal == SIGTERM &&
           session_lives(rank.outcome.pid);
  };
  while (stop_signal_ != 0 && stage_ == Stage::stopping && Clock::now() < *deadline_ &&
         std::any_of(ranks_.begin(), ranks_.end(), may_have_left_one)) {
    pollfd signals{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0};
    poll(&signals, 1, poll_without_pidfd_ms);
    while (const int signal = signals_.take()) {
      note_stop(signal);
    }
  }
}

void Supervisor::wait() {
  std::vector<pollfd> polled{{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
  int timeout_ms = milliseconds_to_deadline();
  for (const auto& rank : ranks_) {
    if (rank.outcome.ended) {
      continue;
    }
    polled.push_back({.fd = rank.ended.get(), .events = POLLIN, .revents = 0});
    polled.push_back({.fd = rank.errors.get(), .events = POLLIN, .revents = 0});
    if (!rank.ended && (timeout_ms < 0 || timeout_ms > poll_without_pidfd_ms)) {
      timeout_ms = poll_without_pidfd_ms;
    }
  }
  poll(polled.data(), polled.size(), timeout_ms);
}

void Supervisor::note_rank(const RankProcess& rank) {
  if (!failed_by_itself(rank.outcome) && !stopped_by_itself(rank.outcome)) {
    return;
  }
  const int code = code_of(rank.outcome);
  const bool peer_lost = code == static_cast<int>(ErrorKind::peer_lost);
  const auto now = Clock::now();
  if (stage_ == Stage::running || stage_ == Stage::failing) {
    const auto then = now + (peer_lost ? peer_settle_time : settle_time);
    deadline_ = deadline_ ? std::min(*deadline_, then) : then;
    // Ranks that stop on a signal of their own are given time to save.
    const double grace_s = is_stop_code(code) ? options_.stop_grace_s : options_.grace_s;
    grace_s_ = stage_ == Stage::running ? grace_s : std::min(grace_s_, grace_s);
    stage_ = Stage::failing;
  } else if (stage_ == Stage::stopping && !peer_lost) {
    const auto then = now + duration_cast<Clock::duration>(duration<double>{options_.grace_s});
    deadline_ = std::min(*deadline_, then);
  }
}

void Supervisor::note_stop(int signal) {
  if (signal == SIGUSR1) {
    pass_on(signal);
    return;
  }
  if (stage_ == Stage::running) {
    stop_signal_ = signal;
  }
  if (stage_ == Stage::running || stage_ == Stage::failing) {
    stop_ranks(stage_ == Stage::running ? options_.stop_grace_s : grace_s_);
  } else if (signal == SIGINT) {
    kill_ranks();
  }
}

// To the ranks alone: their children may not know the signal, and it would end them.
void Supervisor::pass_on(int signal) const {
  for (const auto& rank : ranks_) {
    if (!rank.outcome.ended) {
      kill(rank.outcome.pid, signal);
    }
  }
}

void Supervisor::advance() {
  if (!deadline_ || Clock::now() < *deadline_) {
    return;
  }
  if (stage_ == Stage::failing) {
    stop_ranks(grace_s_);
  } else if (stage_ == Stage::stopping) {
    kill_ranks();
  } else {
    stage_ = Stage::abandoned;
  }
}

void Supervisor::stop_ranks(double grace_s) {
  for (auto& rank : ranks_) {
    if (!rank.outcome.ended) {
      rank.outcome.told_to_stop = true;
      rank.place.tell_stop_signal(stop_signal_);
      kill(-rank.outcome.pid, SIGTERM);
    }
  }
  stage_ = Stage::stopping;
  deadline_ = Clock::now() + duration_cast<Clock::duration>(duration<double>{grace_s});
}

void Supervisor::kill_ranks() {
  for (auto& rank : ranks_) {
    if (!rank.outcome.ended) {
      rank.outcome.killed = true;
      kill(-rank.outcome.pid, SIGKILL);
    }
  }
  stage_ = Stage::killing;
  deadline_ = Clock::now() + kill_time;
}

bool Supervisor::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const RankProcess& rank) { return !rank.outcome.ended; });
}

int Supervisor::milliseconds_to_deadline() const {
  if (!deadline_) {
    return -1;
  }
  const auto left = std::chrono::ceil<milliseconds>(*deadline_ - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

Verdict Supervisor::verdict() const {
  std::vector<RankOutcome> outcomes;
  for (const auto& rank : ranks_) {
    RankOutcome& outcome = outcomes.emplace_back(rank.outcome);
    outcome.last_seen = rank.place.text();
    if (!options_.run_dir.empty() && !outcome.record && failed_by_itself(outcome)) {
      outcome.record = write_for(outcome, rank.stack, options_.run_dir);
    }
  }
  return judge(outcomes, stop_signal_);
}

}  // namespace muster::detail
