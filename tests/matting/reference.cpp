#include "tests/matting/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

namespace muster::test {

namespace {

template <typename T>
constexpr long double unit() {
  return std::is_integral_v<T> ? std::numeric_limits<T>::max() : 1.0L;
}

constexpr int64_t count(const std::vector<bool>& pixels) {
  return std::count(pixels.begin(), pixels.end(), true);
}

int replicated(int at, int size) { return std::min(std::max(at, 0), size - 1); }

int reflected(int at, int size) {
  while (at < 0 || at >= size) {
    at = at < 0 ? -1 - at : 2 * size - 1 - at;
  }
  return at;
}

struct Taps {
  int radius;
  std::vector<long double> smooth;
  std::vector<long double> derive;
};

Taps unit_taps() {
  Taps taps{4, {}, {}};
  long double norm = 0.0L;
  for (int y = -4; y <= 4; ++y) {
    for (int x = -4; x <= 4; ++x) {
      const long double tap = x * std::exp(-(x * x + y * y) / (2 * 1.4L * 1.4L));
      norm += tap * tap;
    }
  }
  for (int x = -4; x <= 4; ++x) {
    const long double gauss = std::exp(-x * x / (2 * 1.4L * 1.4L));
    taps.smooth.push_back(gauss);
    taps.derive.push_back(x * gauss / std::sqrt(norm));
  }
  return taps;
}

Taps gaussian_taps() {
  Taps taps{6, {}, {}};
  for (int x = -6; x <= 6; ++x) {
    taps.smooth.push_back(std::exp(-x * x / (2 * 1.4L * 1.4L)));
  }
  const long double sum = std::accumulate(taps.smooth.begin(), taps.smooth.end(), 0.0L);
  for (int x = -6; x <= 6; ++x) {
    taps.smooth[x + 6] /= sum;
    taps.derive.push_back(-x / (1.4L * 1.4L) * taps.smooth[x + 6]);
  }
  return taps;
}

}  // namespace

template <typename T>
SlowReference<T>::SlowReference(const Grid<T>& prediction, const Grid<T>& truth,
                                MattingProfile profile)
    : prediction_{prediction},
      truth_{truth},
      profile_{profile},
      tenths_{find_tenths()},
      gradient_errors_{gradient_errors()} {}

template <typename T>
bool SlowReference<T>::reaches(int pixel, int level) const {
  const T both = std::min(prediction_.values[pixel], truth_.values[pixel]);
  if constexpr (std::is_integral_v<T>) {
    return int64_t{10} * both >= int64_t{level} * std::numeric_limits<T>::max();
  } else {
    return static_cast<double>(both) >= level / 10.0;
  }
}

template <typename T>
auto SlowReference<T>::components(int level) const -> std::vector<Pixels> {
  std::vector<Pixels> found;
  Pixels seen(prediction_.size());
  for (int first = 0; first < prediction_.size(); ++first) {
    if (seen[first] || !reaches(first, level)) {
      continue;
    }
    Pixels component(prediction_.size());
    std::vector<int> waiting{first};
    seen[first] = true;
    while (!waiting.empty()) {
      const int pixel = waiting.back();
      waiting.pop_back();
      component[pixel] = true;
      const int x = pixel % prediction_.width;
      const int y = pixel / prediction_.width;
      const int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
      for (const auto& [dx, dy] : steps) {
        if (x + dx < 0 || x + dx >= prediction_.width || y + dy < 0 ||
            y + dy >= prediction_.height) {
          continue;
        }
        const int next = (y + dy) * prediction_.width + x + dx;
        if (!seen[next] && reaches(next, level)) {
          seen[next] = true;
          waiting.push_back(next);
        }
      }
    }
    found.push_back(component);
  }
  return found;
}

template <typename T>
bool SlowReference<T>::comes_first(const Pixels& one, const Pixels& two) const {
  const bool by_column = profile_ == MattingProfile::matlab;
  for (int i = 0; i < prediction_.size(); ++i) {
    const int pixel =
        by_column ? i % prediction_.height * prediction_.width + i / prediction_.height : i;
    if (one[pixel] != two[pixel]) {
      return one[pixel];
    }
  }
  return false;
}

/// The set that stays in at a level; empty when there is none.
template <typename T>
auto SlowReference<T>::largest(int level) -> Pixels {
  Pixels best(prediction_.size());
  for (const Pixels& component : components(level)) {
    events_.ties += count(component) == count(best) ? 1 : 0;
    if (count(component) > count(best) ||
        (count(component) == count(best) && comes_first(component, best))) {
      best = component;
    }
  }
  if (profile_ == MattingProfile::gca) {
    Pixels outside(prediction_.size());
    for (int pixel = 0; pixel < prediction_.size(); ++pixel) {
      outside[pixel] = !reaches(pixel, level);
    }
    if (count(outside) >= count(best)) {
      return outside;
    }
  }
  return best;
}

template <typename T>
std::vector<uint8_t> SlowReference<T>::find_tenths() {
  std::vector<uint8_t> l(prediction_.size(), 10);
  Pixels in(prediction_.size(), true);
  for (int level = 1; level <= 10; ++level) {
    const Pixels stays = largest(level);
    if (count(stays) == 0) {
      events_.empty_levels += count(in) > 0 ? 1 : 0;
      if (profile_ == MattingProfile::p3m) {
        continue;
      }
    }
    const bool any = count(in) > 0;
    for (int pixel = 0; pixel < prediction_.size(); ++pixel) {
      if (in[pixel] && !stays[pixel]) {
        in[pixel] = false;
        l[pixel] = static_cast<uint8_t>(level - 1);
      }
    }
    events_.breaks += any && count(in) == 0 && count(stays) > 0 ? 1 : 0;
  }
  return l;
}

template <typename T>
std::vector<long double> SlowReference<T>::magnitudes(const Grid<T>& picture) const {
  const bool wide = profile_ == MattingProfile::p3m;
  static const Taps narrow_taps = unit_taps();
  static const Taps wide_taps = gaussian_taps();
  const Taps& taps = wide ? wide_taps : narrow_taps;
  const auto inside = wide ? reflected : replicated;
  long double lowest = 0.0L;
  long double range = unit<T>();
  if (profile_ == MattingProfile::matlab) {
    const auto [low, high] = std::minmax_element(picture.values.begin(), picture.values.end());
    lowest = *low;
    range = *high > *low ? static_cast<long double>(*high) - *low : 1.0L;
  }
  std::vector<long double> result;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      long double along_x = 0.0L;
      long double along_y = 0.0L;
      for (int dy = -taps.radius; dy <= taps.radius; ++dy) {
        for (int dx = -taps.radius; dx <= taps.radius; ++dx) {
          const int pixel =
              inside(y + dy, picture.height) * picture.width + inside(x + dx, picture.width);
          const long double value = (picture.values[pixel] - lowest) / range;
          along_x += taps.smooth[dy + taps.radius] * taps.derive[dx + taps.radius] * value;
          along_y += taps.derive[dy + taps.radius] * taps.smooth[dx + taps.radius] * value;
        }
      }
      result.push_back(std::sqrt(along_x * along_x + along_y * along_y));
    }
  }
  return result;
}

template <typename T>
std::vector<long double> SlowReference<T>::gradient_errors() const {
  auto errors = magnitudes(prediction_);
  const auto actual = magnitudes(truth_);
  for (int pixel = 0; pixel < prediction_.size(); ++pixel) {
    errors[pixel] = (errors[pixel] - actual[pixel]) * (errors[pixel] - actual[pixel]);
  }
  return errors;
}

template <typename T>
RegionErrors SlowReference<T>::errors(const std::vector<bool>& inside) const {
  const auto kept = [](T value, int tenths) -> long double {
    if constexpr (std::is_integral_v<T>) {
      const int64_t full = std::numeric_limits<T>::max();
      const int64_t above = int64_t{10} * value - tenths * full;
      return 2 * above >= 3 * full ? above : 0;
    } else {
      const double above = static_cast<double>(value) - tenths / 10.0;
      return above >= 0.15 ? above : 0.0;
    }
  };
  RegionErrors region;
  long double sad = 0.0L;
  long double sse = 0.0L;
  long double grad = 0.0L;
  long double conn = 0.0L;
  for (int pixel = 0; pixel < prediction_.size(); ++pixel) {
    if (inside[pixel]) {
      const T p = prediction_.values[pixel];
      const T g = truth_.values[pixel];
      const long double difference = std::abs(static_cast<long double>(p) - g);
      region.n += 1;
      sad += difference;
      sse += difference * difference;
      grad += gradient_errors_[pixel];
      conn += std::abs(kept(p, tenths_[pixel]) - kept(g, tenths_[pixel]));
    }
  }
  if constexpr (std::is_integral_v<T>) {
    region.sums = ErrorSums{std::llround(sad), std::llround(sse), std::llround(conn)};
    conn /= 10.0L * unit<T>();
  }
  if (region.n > 0) {
    region.values =
        ErrorValues{static_cast<double>(sad / unit<T>() / 1000),
                    static_cast<double>(sse / (unit<T>() * unit<T>()) / region.n),
                    static_cast<double>(grad / (profile_ == MattingProfile::p3m ? 10 : 1000)),
                    static_cast<double>(conn / 1000)};
  }
  return region;
}

template class SlowReference<uint8_t>;
template class SlowReference<uint16_t>;
template class SlowReference<float>;
template class SlowReference<double>;

}  // namespace muster::test
