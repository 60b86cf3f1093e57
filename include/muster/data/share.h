#pragma once

#include <cstdint>
#include <limits>

namespace muster {

/// Which of an epoch's batches a rank takes, and in which order they are: k = first + rank,
/// first + rank + world_size, ... below `limit`.
struct Share {
  int64_t limit = std::numeric_limits<int64_t>::max();  ///< at least 0
  int rank = 0;
  int world_size = 1;
  uint64_t seed = 0;    ///< for a loader that has none of its own
  int64_t first = 0;    ///< batches before it were done earlier
  bool shuffle = true;  ///< false: the data set's own order, also of a loader that shuffles
};

}  // namespace muster
