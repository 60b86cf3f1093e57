#pragma once

#include <muster/proc/launch.h>
#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/proc/descriptor_internal.h"
#include "src/proc/shared_place_internal.h"
#include "src/proc/stop_signals_internal.h"
#include "src/proc/verdict_internal.h"

namespace muster::detail {

/// A child of the launcher, and what it has said so far.
struct RankProcess {
  RankProcess(int rank, pid_t pid, Descriptor errors, SharedPlace place);

  RankOutcome outcome{};
  Descriptor ended{};      ///< readable once the process has ended
  Descriptor errors;       ///< the launcher's end of MUSTER_ERROR_FD
  std::string received{};  ///< from it
  int stop_signal = 0;     ///< that told it to stop, as it said
  std::string stack{};     ///< of its crash, as it said
  SharedPlace place;

  /// Reads what has come; a whole record goes into `outcome`.
  void read_errors();
  /// Notes its end in `outcome`. The process stays a zombie, so that its id names nothing else.
  void look_for_end();
};

/// Watches the ranks until all have ended, and ends the job when one fails or when the launcher is
/// told to stop.
class Supervisor {
 public:
  Supervisor(const StopSignals& signals, const LaunchOptions& options)
      : signals_{signals}, options_{options} {}
  /// Kills and reaps whatever is left.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void add(RankProcess rank) { ranks_.push_back(std::move(rank)); }
  Verdict run();

 private:
  using Clock = std::chrono::steady_clock;
  /// running -> failing: a better root cause may still come -> stopping: SIGTERM was sent ->
  /// killing: SIGKILL was sent -> abandoned: even that did not help.
  enum class Stage { running, failing, stopping, killing, abandoned };

  void wait();
  void note_rank(const RankProcess& rank);
  void note_stop(int signal);
  void pass_on(int signal) const;
  void advance();
  void stop_ranks(double grace_s);
  void kill_ranks();
  /// A rank may be a script, which SIGTERM ends while the program that it runs still saves: that
  /// has the same time. What is left then is killed with the Supervisor.
  void wait_for_programs();
  [[nodiscard]] bool any_running() const;
  [[nodiscard]] int milliseconds_to_deadline() const;
  [[nodiscard]] Verdict verdict() const;

  const StopSignals& signals_;
  const LaunchOptions& options_;
  std::vector<RankProcess> ranks_;
  Stage stage_ = Stage::running;
  std::optional<Clock::time_point> deadline_{};  ///< when the next stage begins
  double grace_s_ = 0;                           ///< of the stage `stopping`, when it comes
  int stop_signal_ = 0;
};

}  // namespace muster::detail
