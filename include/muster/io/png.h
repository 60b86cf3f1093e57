#pragma once

#include <muster/io/image.h>

#include <string>

namespace muster {

/// How a PNG is written.
struct PngOptions {
  int level =
      1;  ///< libdeflate's compression level, 0 (stored) to 12 (smallest); the pixels are the same
};

/// The image as a PNG file: gray, gray and alpha, RGB or RGBA of 8 or 16 bits, no other chunks than
/// it needs. Equal pixels and options give equal bytes. From any thread. Error of kind `usage` for
/// an image without pixels, of other channels or depths, or with a side above 2^31 - 1.
std::string encode_png(const ImageView& image, const PngOptions& options = {});

}  // namespace muster
