#pragma once

#include <muster/track/compare_runs.h>

#include <string>
#include <vector>

namespace muster::app {

/// The run at one number of ranks beside the first run.
struct CheckedRun {
  int ranks = 1;
  RunComparison comparison{};
  std::vector<RunDifference> environment{};
};

/// What `muster check` says at the end: one line when all runs equal the first, at `first_ranks`.
/// Otherwise the differences of the first run that is not equal, and what may be their reason.
std::string check_report(int first_ranks, const std::vector<CheckedRun>& runs);

}  // namespace muster::app
