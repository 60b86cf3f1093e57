#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

/// States that this rank has begun the job's work: from here until report_end() an exit with code 0
/// is a failure, since the others still count on it. Without Muster's launcher it does nothing.
void report_begin();

/// States that a signal has told this rank to stop, so that the launcher tells the others: for work
/// in which they meet late. Call it after report_begin, at any time; the first call counts. Without
/// Muster's launcher it does nothing.
void report_stop(int signal);

/// The signal because of which Muster's launcher has sent this rank SIGTERM: SIGINT after Ctrl-C,
/// for example. 0 where it was none, and without Muster's launcher.
int launchers_stop_signal();

/// States that the rank's part of the work is done. Call it after the last collective.
void report_end();

/// Where a rank is.
struct RankPlace {
  std::string_view what{};  ///< at most 15 bytes: "fit"
  int64_t epoch = 0;
  int64_t step = -1;   ///< -1: there are no steps
  int64_t batch = -1;  ///< -1: between batches
};
/// Shows the launcher where this rank is, for the message about one that is killed or hangs, and so
/// cannot say it. A few stores into memory that both see; without Muster's launcher nothing. One
/// thread at a time.
void report_place(const RankPlace& place);

}  // namespace muster
