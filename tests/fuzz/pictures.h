#pragma once

#include <muster/io/image.h>

#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace muster::fuzz {

inline bool same_pixels(const Image& one, const Image& two) {
  return one.width == two.width && one.height == two.height && one.channels == two.channels &&
         one.depth == two.depth &&
         std::memcmp(one.pixels.get(), two.pixels.get(), static_cast<size_t>(one.bytes())) == 0;
}

inline Image copy_of(const Image& image) {
  Image copy = Image::uninitialised(image.width, image.height, image.channels, image.depth);
  std::copy_n(image.pixels.get(), image.bytes(), copy.pixels.get());
  return copy;
}

/// Decodes under small limits, and checks that the header told the same and that every conversion
/// gives the channels it says.
inline std::optional<Image> decode_and_check(std::string_view file) {
  constexpr DecodeLimits limits{.max_pixels = 1 << 16, .max_side = 4096, .max_bytes = 1 << 20};
  const auto info = unless_refused(ErrorKind::data, [&] { return read_image_info(file, "input"); });
  auto image = unless_refused(ErrorKind::data, [&] { return decode_image(file, "input", limits); });
  if (!image) {
    return std::nullopt;
  }
  require(info.has_value(), "a picture is read whose header is refused");
  require(info->width == image->width && info->height == image->height &&
              info->channels == image->channels && info->depth == image->depth,
          "the header told another shape");
  require(image->width * image->height <= limits.max_pixels && image->width <= limits.max_side &&
              image->height <= limits.max_side && image->bytes() <= limits.max_bytes,
          "the limits were passed");
  require(same_pixels(decode_image(file, "input", limits), *image),
          "a second time reads otherwise");
  for (const auto& [mode, channels] : {std::pair{ImageMode::unchanged, image->channels},
                                       {ImageMode::gray, 1},
                                       {ImageMode::rgb, 3},
                                       {ImageMode::rgba, 4},
                                       {ImageMode::alpha, 1}}) {
    const Image converted = convert_image(copy_of(*image), mode);
    require(converted.width == image->width && converted.height == image->height &&
                converted.channels == channels && converted.depth == image->depth,
            "a conversion gives another shape");
  }
  return image;
}

}  // namespace muster::fuzz
