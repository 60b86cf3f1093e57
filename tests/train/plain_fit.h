#pragma once

#include <muster/train/callback.h>
#include <muster/train/options.h>

#include <functional>
#include <memory>
#include <string>

namespace muster::test {

/// A fit that a test need not see torch's modules for: a regression of 22 points, 11 batches an
/// epoch, on threads.
struct PlainFit {
  TrainerOptions options{};
  int ranks = 1;
  std::string ckpt_path{};
  /// One more callback for each rank.
  std::function<std::shared_ptr<Callback>()> callback{};
};

void run_plain_fit(const PlainFit& plain);

}  // namespace muster::test
