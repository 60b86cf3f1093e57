#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/proc/failure_record_internal.h"

namespace muster::detail {

/// How one rank ended, as far as the launcher knows.
struct RankOutcome {
  int rank = 0;
  pid_t pid = 0;
  bool ended = false;
  int exit_code = 0;          ///< when it exited
  int signal = 0;             ///< that ended it; 0 when it exited
  int64_t ended_ns = 0;       ///< when the launcher saw that, by CLOCK_MONOTONIC
  bool told_to_stop = false;  ///< the launcher sent SIGTERM before
  bool killed = false;        ///< the launcher sent SIGKILL before
  std::optional<FailureRecord> record{};
  bool begun = false;       ///< it said that it had begun its work
  bool finished = false;    ///< and that it had done it
  std::string last_seen{};  ///< where it was: "fit, epoch 1, step 5, batch 10"; may be ""
};

/// Whether the rank failed, other than by what the launcher did to it; a stop by a signal is none.
bool failed_by_itself(const RankOutcome& outcome);

/// The exit code that stands for the rank's end: 128 + n for signal n.
int code_of(const RankOutcome& outcome);

/// "exited with code 3", "killed by SIGKILL"
std::string how_it_ended(const RankOutcome& outcome);

/// Whether it ended with 0 while the others still counted on it.
bool left_early(const RankOutcome& outcome);

/// Whether it stopped, well, by a signal that it got itself.
bool stopped_by_itself(const RankOutcome& outcome);

/// A code by which a rank says that it stopped because a signal asked for it.
bool is_stop_code(int code);

/// "SIGKILL"
std::string signal_name(int signal);

/// A rank's text on a terminal: no control characters, further lines indented.
std::string shown(const std::string& text);

struct Verdict {
  int exit_code = 0;
  std::string text{};  ///< for stderr; "" when there is nothing to say
};

/// Finds the root cause: the earliest failure that is not "peer lost" and not the launcher's doing.
/// `stop_signal`: what the launcher was told to stop by, 0 for nothing.
Verdict judge(std::span<const RankOutcome> outcomes, int stop_signal);

}  // namespace muster::detail
