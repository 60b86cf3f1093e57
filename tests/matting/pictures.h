#pragma once

#include <muster/base/random.h>

#include "tests/matting/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace muster::test {

constexpr std::array profiles{MattingProfile::dim, MattingProfile::gca, MattingProfile::matlab,
                              MattingProfile::p3m};

constexpr int styles = 6;

/// Values where the conventions differ: at thresholds and just below them, few levels, many levels.
template <typename T>
T random_value(Rng& rng, int style) {
  const auto of_full = [](double alpha) {
    return std::is_integral_v<T>
               ? static_cast<T>(std::lround(alpha * std::numeric_limits<T>::max()))
               : static_cast<T>(alpha);
  };
  switch (style) {
    case 0:
      return of_full(static_cast<double>(rng.below(256)) / 255.0);
    case 1:
      return of_full(static_cast<double>(rng.below(11)) / 10.0);
    case 2:
      return of_full(static_cast<double>(rng.below(41)) / 40.0);
    case 3:
      return of_full(rng.below(3) == 0 ? 0.0 : 1.0);
    case 4:
      return of_full(std::array{0.0, 0.31, 0.6, 0.95, 1.0}[rng.below(5)]);
    default:
      return of_full(rng.uniform());
  }
}

template <typename T>
Grid<T> random_grid(Rng& rng, int width, int height, int style) {
  Grid<T> grid{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    grid.values.push_back(random_value<T>(rng, style));
  }
  return grid;
}

/// The truth with some values changed, or another picture altogether.
template <typename T>
Grid<T> random_prediction(Rng& rng, const Grid<T>& truth, int style) {
  if (rng.below(3) == 0) {
    return random_grid<T>(rng, truth.width, truth.height, style);
  }
  auto prediction = truth;
  for (auto& value : prediction.values) {
    if (rng.below(4) == 0) {
      value = random_value<T>(rng, style);
    }
  }
  return prediction;
}

/// Values at and beside the bounds of the unknown region.
inline Grid<uint8_t> random_trimap(Rng& rng, int width, int height) {
  Grid<uint8_t> trimap{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    trimap.values.push_back(std::array<uint8_t, 7>{0, 84, 85, 128, 169, 170, 255}[rng.below(7)]);
  }
  return trimap;
}

inline std::vector<bool> unknown_of(const Grid<uint8_t>& trimap) {
  std::vector<bool> unknown(trimap.values.size());
  std::transform(trimap.values.begin(), trimap.values.end(), unknown.begin(),
                 [](uint8_t value) { return value >= 85 && value <= 169; });
  return unknown;
}

}  // namespace muster::test
