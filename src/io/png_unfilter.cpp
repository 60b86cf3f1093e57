#include <algorithm>
#include <array>

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

/// Of left, above and corner, the one nearest to left + above - corner (PNG, 9.4).
uint8_t paeth(int left, int above, int corner) {
  const int towards_above = above - corner;
  const int towards_left = left - corner;
  int distance = std::abs(towards_above);
  const int from_above = std::abs(towards_left);
  const int from_corner = std::abs(towards_above + towards_left);
  int nearest = left;
  nearest = from_above < distance ? above : nearest;
  distance = std::min(distance, from_above);
  nearest = from_corner < distance ? corner : nearest;
  return static_cast<uint8_t>(nearest);
}

/// Adds to each byte what the filter predicts from the bytes of the pixel to the left, of the pixel
/// above and of the one between them, which are 0 left of the first pixel. With the pixel's size
/// known to the compiler the values stay in registers and a pixel's bytes go side by side.
template <size_t pixel_bytes, typename Predict>
void add_predicted(uint8_t* row, const uint8_t* above, size_t bytes, Predict predict) {
  std::array<uint8_t, pixel_bytes> left{};
  std::array<uint8_t, pixel_bytes> corner{};
  for (size_t i = 0; i + pixel_bytes <= bytes; i += pixel_bytes) {
    for (size_t k = 0; k < pixel_bytes; ++k) {
      const uint8_t up = above[i + k];
      left[k] = static_cast<uint8_t>(row[i + k] + predict(left[k], up, corner[k]));
      corner[k] = up;
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
      add_predicted<pixel_bytes>(row, above, bytes, [](int left, int, int) { return left; });
      return true;
    case 2:
      add_above(row, above, bytes);
      return true;
    case 3:
      add_predicted<pixel_bytes>(row, above, bytes,
                                 [](int left, int up, int) { return (left + up) / 2; });
      return true;
    case 4:
      add_predicted<pixel_bytes>(row, above, bytes, paeth);
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
