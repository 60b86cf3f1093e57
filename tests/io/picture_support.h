#pragma once

#include <muster/io/image.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::test {

/// A picture as a PNG holds it, before any conversion.
struct RawPng {
  int64_t width = 0;
  int64_t height = 0;
  int depth = 8;
  int colour = 0;  ///< PNG's colour type
  bool interlaced = false;
  int filter = 0;                       ///< the one that every row gets
  std::vector<uint8_t> palette{};       ///< R, G, B of each colour
  std::vector<uint16_t> transparent{};  ///< a sample each of one colour, or alphas of the palette
  std::vector<uint16_t> samples{};

  [[nodiscard]] int samples_a_pixel() const;
};

/// Random samples (and a palette where there must be one) of that shape.
RawPng random_png(int64_t width, int64_t height, int depth, int colour, uint64_t seed);

/// The file as libpng writes it.
std::string write_by_libpng(const RawPng& raw);

/// What a decoder must give for it, channels together, by the letter of the standard.
std::vector<uint16_t> expected_values(const RawPng& raw);

/// The message of the Error of kind `data` that decoding `file` under the name "set/a.png" gives,
/// or "no error".
std::string refusal(const std::string& file, const DecodeLimits& limits = {});

/// Expects that decoding is refused with a message that contains `text`.
void expect_refused(const std::string& file, std::string_view text,
                    const DecodeLimits& limits = {});

/// The pixels of an 8- or 16-bit PNG as libpng reads them.
std::vector<uint16_t> read_by_libpng(const std::string& file);

/// All values of a decoded image.
std::vector<uint16_t> values_of(const Image& image);

/// A smooth picture with some noise.
Image smooth_image(int64_t width, int64_t height, int channels, int depth = 8);

/// The file as libjpeg writes it, quality 95; `components` 1 (gray), 3 (RGB) or 4 (CMYK).
std::string write_jpeg(const Image& image, int components, bool progressive);

}  // namespace muster::test
