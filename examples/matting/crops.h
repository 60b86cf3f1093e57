#pragma once

#include "icons.h"

#include <muster/data/dataset.h>

#include <cstdint>
#include <memory>

namespace matting {

struct CropOptions {
  int64_t size = 96;    ///< side of a crop, pixels
  int64_t repeats = 8;  ///< crops of each icon an epoch
  double zoom = 1.4;    ///< an icon is enlarged or reduced by this factor at most
  double jitter = 0.4;  ///< a colour is multiplied by 1 - jitter to 1 + jitter
};

/// Training data: square crops around unknown pixels of the training split's icons, each before a
/// part of a photograph, both mirrored, zoomed and recoloured at random. Sample i shows icon
/// i % (number of icons); all else is drawn from the sample's random numbers. Pictures are decoded
/// once, when they are first needed, and stay in memory (about 1 MB each). Error of kind `data`
/// when a folder lacks its pictures.
std::shared_ptr<const muster::Dataset<Photo>> training_crops(const IconOptions& icons,
                                                             const CropOptions& options);

}  // namespace matting
