#pragma once

#include "files.h"
#include "memory.h"
#include "result.h"

#include <muster/matting/errors.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace muster::app {

/// How one rank works.
struct WorkOptions {
  MattingProfile profile = MattingProfile::dim;  ///< which convention
  bool has_trimaps = false;                      ///< which errors say how bad an image is
  size_t most_thumbnails = 0;                    ///< of how many of the worst images
  int threads = 1;                               ///< each decodes and computes images of its own
  MemoryPlan memory{};                           ///< this rank's part
};

/// What came of some images.
struct WorkResult {
  std::vector<ImageRow> rows{};
  std::vector<Problem> problems{};
  std::map<int64_t, Thumbnails> thumbnails{};
  std::vector<int64_t> too_large{};  ///< indices that need more memory than this rank may take
};

/// Computes the images `indices` of `samples`. A file that cannot be used is a problem, and the
/// others go on. `on_progress` is called on this thread now and then with how many are done.
WorkResult compute_images(const std::vector<MattingSample>& samples,
                          const std::vector<int64_t>& indices, const WorkOptions& options,
                          const std::function<void(int64_t done)>& on_progress);

}  // namespace muster::app
