#include <muster/base/check.h>
#include <muster/io/image.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/io/codecs_internal.h"
#include "src/io/png_internal.h"

namespace muster {
namespace {

enum class Format { png, jpeg };

Format format_of(std::string_view bytes, std::string_view name) {
  check(!bytes.empty(), ErrorKind::data, "{}: is no picture: it is empty", name);
  if (bytes.starts_with(png_signature)) {
    return Format::png;
  }
  if (bytes.starts_with("\xff\xd8\xff")) {
    return Format::jpeg;
  }
  fail(ErrorKind::data,
       "{}: is no picture that can be read here: it begins like no PNG and no JPEG", name);
}

template <typename Number>
const Number* values(const Image& image) {
  return reinterpret_cast<const Number*>(image.pixels.get());
}

bool has_alpha(const Image& image) { return image.channels == 2 || image.channels == 4; }

template <typename Number>
bool opaque_everywhere(const Image& image) {
  const Number* pixel = values<Number>(image);
  const int64_t channels = image.channels;
  for (int64_t i = channels - 1; i < image.width * image.height * channels; i += channels) {
    if (pixel[i] != std::numeric_limits<Number>::max()) {
      return false;
    }
  }
  return true;
}

template <typename Number>
Number luma(const Number* pixel, int channels) {
  if (channels < 3) {
    return pixel[0];
  }
  return static_cast<Number>((19595U * pixel[0] + 38470U * pixel[1] + 7471U * pixel[2] + 32768U) >>
                             16U);
}

/// Writes every pixel of `from` to `to` by `write(pixel, result)`.
template <typename Number, typename Write>
void each_pixel(const Image& from, Image& to, Write write) {
  const Number* pixel = values<Number>(from);
  auto* result = reinterpret_cast<Number*>(to.pixels.get());
  for (int64_t i = 0; i < from.width * from.height; ++i) {
    write(pixel, result);
    pixel += from.channels;
    result += to.channels;
  }
}

template <typename Number>
Image convert(const Image& from, ImageMode mode) {
  const int channels = from.channels;
  if (mode == ImageMode::alpha && (!has_alpha(from) || opaque_everywhere<Number>(from))) {
    mode = ImageMode::gray;
  }
  const int wanted = mode == ImageMode::rgb ? 3 : mode == ImageMode::rgba ? 4 : 1;
  Image to = Image::uninitialised(from.width, from.height, wanted, from.depth);
  if (mode == ImageMode::gray) {
    each_pixel<Number>(from, to, [channels](const Number* pixel, Number* result) {
      *result = luma(pixel, channels);
    });
  } else if (mode == ImageMode::alpha) {
    each_pixel<Number>(from, to, [channels](const Number* pixel, Number* result) {
      *result = pixel[channels - 1];
    });
  } else {
    const bool alpha = has_alpha(from);
    each_pixel<Number>(from, to, [=](const Number* pixel, Number* result) {
      result[0] = pixel[0];
      result[1] = channels < 3 ? pixel[0] : pixel[1];
      result[2] = channels < 3 ? pixel[0] : pixel[2];
      if (wanted == 4) {
        result[3] = alpha ? pixel[channels - 1] : std::numeric_limits<Number>::max();
      }
    });
  }
  return to;
}

bool fits(int channels, ImageMode mode) {
  switch (mode) {
    case ImageMode::unchanged:
      return true;
    case ImageMode::rgb:
      return channels == 3;
    case ImageMode::rgba:
      return channels == 4;
    default:
      return channels == 1;
  }
}

}  // namespace

Image Image::uninitialised(int64_t width, int64_t height, int channels, int depth) {
  Image image{width, height, channels, depth, nullptr};
  image.pixels = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(image.bytes()));
  return image;
}

void check_limits(const ImageInfo& info, std::string_view name, const DecodeLimits& limits) {
  constexpr int64_t most = int64_t{1} << 40;  // so that no product of sizes overflows
  const int64_t pixels = std::min(limits.max_pixels, most);
  check(info.width <= limits.max_side && info.height <= limits.max_side &&
            info.width <= pixels / info.height,
        ErrorKind::data,
        "{}: is too large: its header claims {} x {} pixels; at most {} in all and {} a side are "
        "read",
        name, info.width, info.height, pixels, limits.max_side);
}

void check_memory(int64_t bytes, std::string_view name, const DecodeLimits& limits) {
  check(bytes <= limits.max_bytes, ErrorKind::data,
        "{}: is too large: decoding it would take {} bytes, and at most {} are taken", name, bytes,
        limits.max_bytes);
}

ImageInfo read_image_info(std::string_view bytes, std::string_view name) {
  return format_of(bytes, name) == Format::png ? png_info(bytes, name) : jpeg_info(bytes, name);
}

Image decode_image(std::string_view bytes, std::string_view name, const DecodeLimits& limits) {
  return format_of(bytes, name) == Format::png ? decode_png(bytes, name, limits)
                                               : decode_jpeg(bytes, name, limits);
}

Image convert_image(Image image, ImageMode mode) {
  if (fits(image.channels, mode)) {
    return image;
  }
  return image.depth == 16 ? convert<uint16_t>(image, mode) : convert<uint8_t>(image, mode);
}

}  // namespace muster
