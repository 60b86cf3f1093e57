#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace muster {

/// Pixels that somebody else owns: rows from top to bottom, pixels from left to right, channels
/// together.
struct ImageView {
  const uint8_t* pixels = nullptr;  ///< first byte of the top row
  int64_t width = 0;                ///< pixels
  int64_t height = 0;               ///< pixels
  int channels = 0;                 ///< 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA
  int depth = 8;  ///< bits a value: 8 (0..255), or 16 (0..65535) in the machine's byte order
  int64_t row_bytes = 0;  ///< from one row to the next

  [[nodiscard]] int64_t values_a_row() const { return width * channels; }
  [[nodiscard]] const uint8_t* row(int64_t y) const { return pixels + y * row_bytes; }
  /// The row of an image of 16 bits, whose rows must begin at even addresses.
  [[nodiscard]] const uint16_t* row16(int64_t y) const {
    return reinterpret_cast<const uint16_t*>(row(y));
  }
};

/// A decoded picture without gaps between rows. It moves; `view` reads it.
struct Image {
  int64_t width = 0;                    ///< pixels
  int64_t height = 0;                   ///< pixels
  int channels = 0;                     ///< as in ImageView
  int depth = 8;                        ///< as in ImageView
  std::unique_ptr<uint8_t[]> pixels{};  ///< at least `bytes()` of them

  /// An image of that shape whose pixels are not set yet.
  static Image uninitialised(int64_t width, int64_t height, int channels, int depth);

  [[nodiscard]] int64_t row_bytes() const { return width * channels * (depth / 8); }
  [[nodiscard]] int64_t bytes() const { return row_bytes() * height; }
  [[nodiscard]] ImageView view() const {
    return {pixels.get(), width, height, channels, depth, row_bytes()};
  }
};

/// What `decode_image` would give, as far as the header says.
struct ImageInfo {
  int64_t width = 0;   ///< pixels
  int64_t height = 0;  ///< pixels
  int channels = 0;    ///< as in ImageView
  int depth = 8;       ///< as in ImageView
};

/// What a picture's header may claim. Checked before memory is taken for pixels.
struct DecodeLimits {
  int64_t max_pixels = 100'000'000;  ///< width times height
  int64_t max_side = 32'768;         ///< width and height each
  /// Bytes taken for pixels at once: the result, and what it is unpacked from where that is not the
  /// same memory (interlaced, palette and transparent PNG; JPEG of several scans).
  int64_t max_bytes = int64_t{1} << 30;
};

/// Size, channels and depth of a PNG or JPEG from its header; the pixels need not be there. No
/// limits apply. Error of kind `data` that begins with `name` (the path or the sample) when the
/// header cannot be read.
ImageInfo read_image_info(std::string_view bytes, std::string_view name);

/// Decodes a PNG or a JPEG, told apart by their first bytes. From any thread.
///
/// PNG: every colour type, depth and interlacing. 1, 2 and 4 bits become 8 by exact multiples (the
/// file's full scale becomes 255), 16 bits stay 16, a palette becomes RGB, and transparency (tRNS)
/// an alpha channel. JPEG: gray and RGB. Gamma, colour profiles, text and orientation change
/// nothing.
///
/// Error of kind `data` that begins with `name` for what is no picture, is damaged or cut short, or
/// claims more than `limits` allow.
Image decode_image(std::string_view bytes, std::string_view name, const DecodeLimits& limits = {});

/// What the channels of an image are wanted as.
enum class ImageMode {
  unchanged,  ///< as in the file
  gray,       ///< one channel: the colour's luma, alpha dropped
  rgb,        ///< three channels: gray repeated, alpha dropped
  rgba,       ///< four channels: opaque where the file has no alpha
  alpha,  ///< one channel: alpha where there is one that is not opaque everywhere, else the luma
};

/// The image in the wanted channels, at its own depth. Luma is that of ITU-R BT.601 in integers,
/// (19595 R + 38470 G + 7471 B + 32768) / 65536, so that a gray colour is its own luma.
Image convert_image(Image image, ImageMode mode);

}  // namespace muster
