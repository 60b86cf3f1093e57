#pragma once

#include <muster/base/record.h>

#include <cstddef>
#include <span>
#include <vector>

namespace muster::track {

/// Cuts `images` into runs of neighbours for which `together(first of the run, image)` holds, each
/// of at most `most` images.
template <typename Together>
std::vector<std::span<const ImageRecord>> runs_of(std::span<const ImageRecord> images, size_t most,
                                                  Together together) {
  std::vector<std::span<const ImageRecord>> runs;
  size_t begin = 0;
  for (size_t i = 1; i <= images.size(); ++i) {
    if (i == images.size() || i - begin == most || !together(images[begin], images[i])) {
      runs.push_back(images.subspan(begin, i - begin));
      begin = i;
    }
  }
  return runs;
}

/// Whether two neighbours come from one call of log_image.
inline bool same_call(const ImageRecord& a, const ImageRecord& b) {
  return a.key == b.key && a.step == b.step && a.index == b.index;
}

}  // namespace muster::track
