#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "src/io/png_internal.h"

namespace muster {
namespace {

void add_above(uint8_t* row, const uint8_t* above, size_t bytes) {
  size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) {
    store_lanes(row + i, load_lanes(row + i) + load_lanes(above + i));
  }
  for (; i < bytes; ++i) {
    row[i] = static_cast<uint8_t>(row[i] + above[i]);
  }
}

/// The bytes of a pixel side by side, wide enough for differences.
using Pixel [[gnu::vector_size(16)]] = int16_t;
using PixelBytes [[gnu::vector_size(8)]] = uint8_t;

/// Reads 8 bytes, whatever a pixel has: those that follow it play no part.
Pixel load_pixel(const uint8_t* from) {
  PixelBytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Pixel);
}

/// Writes the pixel's bytes alone, from a register (a copy of 3 or 6 bytes would go by way of
/// memory).
template <size_t pixel_bytes>
void store_pixel(uint8_t* to, Pixel pixel) {
  auto bits = std::bit_cast<uint64_t>(__builtin_convertvector(pixel, PixelBytes));
  size_t at = 0;
  if constexpr (pixel_bytes >= 4) {
    std::memcpy(to, &bits, pixel_bytes == 8 ? 8 : 4);
    at = pixel_bytes == 8 ? 8 : 4;
    bits >>= pixel_bytes == 8 ? 0U : 32U;
  }
  if constexpr (pixel_bytes % 4 >= 2) {
    std::memcpy(to + at, &bits, 2);
    at += 2;
    bits >>= 16U;
  }
  if constexpr (pixel_bytes % 2 == 1) {
    to[at] = static_cast<uint8_t>(bits);
  }
}

Pixel absolute(Pixel value) { return value < 0 ? -value : value; }

/// Of left, above and corner, the one nearest to left + above - corner (PNG, 9.4); without
/// branches, which noise would make the processor guess wrong.
template <size_t pixel_bytes>
void add_paeth(uint8_t* row, const uint8_t* above_row, size_t bytes) {
  Pixel left{};
  Pixel corner{};
  for (size_t i = 0; i + pixel_bytes <= bytes; i += pixel_bytes) {
    const Pixel above = load_pixel(above_row + i);
    const Pixel towards_above = above - corner;
    const Pixel towards_left = left - corner;
    const Pixel from_left = absolute(towards_above);
    const Pixel from_above = absolute(towards_left);
    const Pixel from_corner = absolute(towards_above + towards_left);
    const Pixel smaller = from_left < from_above ? from_left : from_above;
    const Pixel smallest = smaller < from_corner ? smaller : from_corner;
    const Pixel other = from_above == smallest ? above : corner;
    const Pixel nearest = from_left == smallest ? left : other;
    left = (load_pixel(row + i) + nearest) & 0xff;
    corner = above;
    store_pixel<pixel_bytes>(row + i, left);
  }
}

/// The same for pixels of one byte, where each waits for the one before it: of above and corner it
/// is known ahead between which values of left neither is nearer than left itself, and from which
/// on the greater of the two is nearer, so that left has only to be compared.
template <>
void add_paeth<1>(uint8_t* row, const uint8_t* above_row, size_t bytes) {
  int left = 0;
  int corner = 0;
  for (size_t i = 0; i < bytes; ++i) {
    const int above = above_row[i];
    const int rise = 3 * (corner - above);
    const int falling = rise & (rise >> 31);  // std::min(rise, 0), for which GCC takes a branch
    const int low = above + falling;
    const int high = above + rise - falling;
    const int middle = above + ((rise + (rise > 0 ? 1 : 0) + 1) >> 1);
    int nearest = left >= middle ? std::max(above, corner) : std::min(above, corner);
    nearest = left <= low ? left : nearest;
    nearest = left >= high ? left : nearest;
    left = (row[i] + nearest) & 0xff;
    row[i] = static_cast<uint8_t>(left);
    corner = above;
  }
}

/// Adds to each byte what the filter predicts from the byte of the pixel to the left (0 before the
/// first) and of the pixel above. As the compiler knows the pixel's size, its values stay in
/// registers.
template <size_t pixel_bytes, typename Predict>
void add_predicted(uint8_t* row, const uint8_t* above, size_t bytes, Predict predict) {
  std::array<uint8_t, pixel_bytes> left{};
  for (size_t i = 0; i + pixel_bytes <= bytes; i += pixel_bytes) {
    for (size_t k = 0; k < pixel_bytes; ++k) {
      left[k] = static_cast<uint8_t>(row[i + k] + predict(left[k], above[i + k]));
      row[i + k] = left[k];
    }
  }
}

template <size_t pixel_bytes>
bool unfilter_pixels(int filter, uint8_t* row, const uint8_t* above, size_t bytes) {
  switch (filter) {
    case 0:
      return true;
    case 1:
      add_predicted<pixel_bytes>(row, above, bytes, [](int left, int) { return left; });
      return true;
    case 2:
      add_above(row, above, bytes);
      return true;
    case 3:
      add_predicted<pixel_bytes>(row, above, bytes,
                                 [](int left, int up) { return (left + up) / 2; });
      return true;
    case 4:
      add_paeth<pixel_bytes>(row, above, bytes);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool png_unfilter(int filter, uint8_t* row, const uint8_t* above, size_t bytes,
                  size_t pixel_bytes) {
  switch (pixel_bytes) {
    case 1:
      return unfilter_pixels<1>(filter, row, above, bytes);
    case 2:
      return unfilter_pixels<2>(filter, row, above, bytes);
    case 3:
      return unfilter_pixels<3>(filter, row, above, bytes);
    case 4:
      return unfilter_pixels<4>(filter, row, above, bytes);
    case 6:
      return unfilter_pixels<6>(filter, row, above, bytes);
    case 8:
      return unfilter_pixels<8>(filter, row, above, bytes);
    default:
      return false;
  }
}

}  // namespace muster
