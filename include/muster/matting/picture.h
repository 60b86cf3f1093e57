#pragma once

#include <cstdint>

namespace muster {

/// One channel of values that somebody else owns and keeps as long as this is used: rows from top
/// to bottom, values from left to right.
///
/// `T` is what a value stands for. uint8_t and uint16_t: v of the full scale, 255 or 65535. float
/// and double: v itself, in [0, 1].
template <typename T>
struct Picture {
  const T* data = nullptr;  ///< first value of the top row
  int64_t width = 0;        ///< values a row
  int64_t height = 0;       ///< rows
  int64_t stride = 0;       ///< values from the start of a row to that of the next

  [[nodiscard]] const T* row(int64_t y) const { return data + y * stride; }
};

using Picture8 = Picture<uint8_t>;
using Picture16 = Picture<uint16_t>;
using PictureF = Picture<float>;
using PictureD = Picture<double>;

}  // namespace muster
