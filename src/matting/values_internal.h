#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace muster {

/// The value of a Picture<T> that stands for 1.
template <typename T>
constexpr T full_scale() {
  return std::is_integral_v<T> ? std::numeric_limits<T>::max() : T{1};
}

/// The region that a trimap calls unknown.
constexpr bool is_unknown(uint8_t trimap) { return trimap >= 85 && trimap <= 169; }

/// The smallest T that is at least i/10 of full scale, for i = 1..10.
template <typename T>
const std::array<T, 10>& thresholds() {
  static const std::array<T, 10> values = [] {
    std::array<T, 10> least{};
    for (int i = 1; i <= 10; ++i) {
      if constexpr (std::is_integral_v<T>) {
        least[i - 1] = static_cast<T>((int32_t{full_scale<T>()} * i + 9) / 10);
      } else {
        const double exact = i / 10.0;
        const auto near = static_cast<T>(exact);
        least[i - 1] = near < exact ? std::nextafter(near, T{2}) : near;
      }
    }
    return least;
  }();
  return values;
}

/// What `distance` gives: an integer in units of 1 / (10 M), or a double.
template <typename T>
using Distance = std::conditional_t<std::is_integral_v<T>, int32_t, double>;

/// How far `value` is above l = `tenths` / 10, or 0 when that is less than 0.15.
template <typename T>
Distance<T> distance(T value, int tenths) {
  if constexpr (std::is_integral_v<T>) {
    constexpr int32_t full = full_scale<T>();
    const int32_t above = 10 * int32_t{value} - tenths * full;
    return 2 * above >= 3 * full ? above : 0;
  } else {
    const double above = static_cast<double>(value) - tenths / 10.0;
    return above >= 0.15 ? above : 0.0;
  }
}

}  // namespace muster
