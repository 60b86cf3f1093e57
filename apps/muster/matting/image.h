#pragma once

#include "files.h"
#include "memory.h"
#include "result.h"

#include <muster/io/image.h>
#include <muster/matting/errors.h>

#include <cstdint>
#include <optional>

namespace muster::app {

/// The mattes of an image on the same grid, and its trimap in 8 bits.
struct Mattes {
  Image prediction{};
  Image truth{};
  std::optional<Image> trimap{};
};

/// What the errors of an image need, by its headers.
struct ImagePlan {
  int64_t width = 0;
  int64_t height = 0;
  int64_t bytes = 0;         ///< to decode its files and compute its errors
  bool counts_runs = false;  ///< `bytes` holds only for pictures with few runs of equal levels
};

/// Reads the headers of a sample's files. Error of kind `data` that names the path: a file that is
/// no picture or cannot be read, sizes that differ, more pixels than `DecodeLimits` allow, more
/// memory than an image may need. Waits at `gate`, so that the caller must hold none of it.
ImagePlan plan_image(const MattingSample& sample, MemoryGate& gate);

/// Decodes a sample's files: alpha where there is an alpha channel that is not opaque everywhere,
/// else the luma. An 8-bit v beside 16 bits becomes 257 v. A trimap of 16 bits is rounded to 8.
/// Errors as `decode_image`.
Mattes load_mattes(const MattingSample& sample);

/// Errors of mattes that `load_mattes` gave, with `index` as it is. Error of kind `data` when a
/// plan that counts runs turns out to need more than an image may.
ImageRow compute_errors(const MattingSample& sample, const Mattes& mattes, const ImagePlan& plan,
                        const MattingOptions& options, MattingWorkspace& workspace);

}  // namespace muster::app
