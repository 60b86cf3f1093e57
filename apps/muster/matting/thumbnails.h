#pragma once

#include "image.h"
#include "result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace muster::app {

/// Small pictures of an image: both mattes, averaged, and where they differ: the largest |p - g| of
/// each place, from black over red and yellow to white. No side is longer than 320 pixels.
Thumbnails make_thumbnails(const Mattes& mattes);

/// The thumbnails of the worst images, whatever the order in which they come. Any thread.
class WorstThumbnails {
 public:
  explicit WorstThumbnails(size_t most) : most_{most} {}

  /// Whether an image is among the worst so far, so that its thumbnails are worth making.
  bool wants(double badness, int64_t index);
  void put(double badness, int64_t index, Thumbnails thumbnails);
  /// Those of the worst images, by index.
  std::map<int64_t, Thumbnails> take();

 private:
  /// Worst first; of equally bad ones the one that comes first.
  using Place = std::pair<double, int64_t>;

  size_t most_;
  std::mutex mutex_;
  std::map<Place, Thumbnails> worst_;
};

}  // namespace muster::app
