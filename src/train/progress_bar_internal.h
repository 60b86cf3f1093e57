#pragma once

#include <muster/train/callback.h>

#include <cstdio>
#include <memory>

namespace muster {

/// Progress of each epoch on `out`: a line that renews itself on a terminal, otherwise a plain line
/// now and then. Shows batches done, rate and time left; of each epoch, one line stays, in a
/// training with its first values.
std::shared_ptr<Callback> make_progress_bar(std::FILE* out = stderr);

}  // namespace muster
