#pragma once

#include <muster/comm/group.h>

#include <functional>
#include <set>
#include <string>

namespace muster {

/// What a user's `ckpt_path` means: "last" and "best" are run_dir/checkpoints/last.ckpt and
/// best.ckpt, a name that is no path is one there, "" stays "". A damaged `last` is named on
/// standard error, and the newest checkpoint there that is whole and of the same training is taken;
/// where its training is not known the line says so. Rank 0 decides; all ranks call it and get the
/// same. Error of kind `usage` on all of them when there is none, `data` when none can be taken.
std::string choose_checkpoint(Group& group, const std::string& run_dir,
                              const std::string& ckpt_path);

/// How a training begins; equal on every rank.
struct FitStart {
  std::string ckpt_path{};  ///< as `choose_checkpoint` gives it
  std::string training{};   ///< its id; "": of a training whose checkpoints have none
  /// Names of the checkpoints in run_dir that are this training's already.
  std::set<std::string, std::less<>> checkpoints{};
};

/// The same for a training, which gets the id `fresh` where it does not go on from a checkpoint.
FitStart choose_start(Group& group, const std::string& run_dir, const std::string& ckpt_path,
                      const std::string& fresh);

}  // namespace muster
