#pragma once

#include <muster/train/stage.h>

#include <cstdint>
#include <string>

namespace muster {

/// Where a loop stands, for the message of a failure.
struct Phase {
  enum class Part { none, begin, before, load, batch, step, after, sync, publish };

  Part part = Part::none;
  Stage stage = Stage::validate;
  int64_t epoch = 0;
  int64_t loader = 0;
  int64_t batch = 0;
  int64_t step = 0;  ///< of fit: optimizer steps taken
};

/// "validate, epoch 0, loader 0, batch 3" or "fit, epoch 0, step 7, batch 14"; "" for none.
std::string to_string(const Phase& phase);

}  // namespace muster
