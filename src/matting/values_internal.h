#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace muster {

/// The value of a Picture<T> that stands for 1.
template <typename T>
constexpr T full_scale() {
  return std::is_integral_v<T> ? std::numeric_limits<T>::max() : T{1};
}

/// The region that a trimap calls unknown: from `first_unknown` on, so many values.
constexpr uint8_t first_unknown = 85;
constexpr uint8_t unknown_values = 85;

template <typename T>
struct Thresholds {
  T least[10];  ///< the smallest T that is at least i/10 of full scale, for i = 1..10
};

template <typename T>
constexpr T least_of_level(int level) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>((int32_t{full_scale<T>()} * level + 9) / 10);
  } else {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const double exact = level / 10.0;
    const auto near = static_cast<T>(exact);
    return near < exact ? std::bit_cast<T>(std::bit_cast<Bits>(near) + 1) : near;
  }
}

template <typename T>
constexpr Thresholds<T> thresholds() {
  Thresholds<T> result{};
  for (int level = 1; level <= 10; ++level) {
    result.least[level - 1] = least_of_level<T>(level);
  }
  return result;
}

}  // namespace muster
