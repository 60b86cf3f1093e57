#pragma once

#include "files.h"
#include "work.h"

#include <muster/comm/group.h>
#include <muster/proc/rank_env.h>

#include <optional>

namespace muster::app {

/// The group of this job; of one rank where `env` is nothing. Error of kind `usage` when somebody
/// else hosts the job's port (torchrun).
Group matting_group(const std::optional<RankEnv>& env);

/// What rank 0 found, on every rank; the others' own is not looked at.
MatchedFiles share_files(Group& group, const MatchedFiles& mine);

/// On rank 0 all ranks' results together, rows and problems in path order, with the thumbnails of
/// at most `most_thumbnails` of the worst; nothing elsewhere.
std::optional<WorkResult> gather_results(Group& group, const WorkResult& mine,
                                         const WorkOptions& options);

/// Puts `more` to `result`, in the same order.
void merge_results(WorkResult& result, WorkResult more, const WorkOptions& options);

}  // namespace muster::app
