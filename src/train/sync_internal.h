#pragma once

#include "evaluate_internal.h"

#include <muster/metrics/ledger.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {

class Metric;

/// The one sync of an epoch: gathers every rank's ledger and metric states in one collective and
/// merges them on every rank, in rank order. `stop_signal` travels along: the result has the
/// greatest.
EpochResult sync_epoch(Group& group, const Ledger& mine,
                       const std::vector<std::pair<std::string, Metric*>>& metrics,
                       int stop_signal = 0);

/// Says of which stage, epoch and step a result is, in its report and its tables.
void stamp(EpochResult& result, Stage stage, int64_t epoch, int64_t global_step);

}  // namespace muster
