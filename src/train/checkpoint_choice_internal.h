#pragma once

#include <muster/comm/group.h>

#include <string>

namespace muster {

/// What a user's `ckpt_path` means: "last" and "best" are run_dir/checkpoints/last.ckpt and
/// best.ckpt, a name that is no path is one there, "" stays "". A damaged `last` is named on
/// standard error, and the newest checkpoint there that is whole is taken. Rank 0 decides; all
/// ranks call it and get the same. Error of kind `usage` on all of them when there is none, `data`
/// when no `last` is whole.
std::string choose_checkpoint(Group& group, const std::string& run_dir,
                              const std::string& ckpt_path);

}  // namespace muster
