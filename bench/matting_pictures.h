#pragma once

#include <muster/base/random.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace muster::bench {

/// A predicted matte, the true one and a trimap, in 8 bits, rows one after the other.
struct Mattes {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> prediction{};
  std::vector<uint8_t> truth{};
  std::vector<uint8_t> trimap{};
};

/// Head and shoulders with hair. The truth is 0 or 255 but for an edge that is soft and full of
/// strands; the prediction has a smoother edge and noise (sigma 6 % of full scale) wherever the
/// trimap is unknown, which is 18 % of the picture, and is exact elsewhere.
class PortraitMaker {
 public:
  PortraitMaker(int64_t width, int64_t height) : width_{width}, height_{height} {}

  [[nodiscard]] Mattes make() const {
    Rng rng{20230724};
    Mattes mattes{.width = width_, .height = height_};
    for (int64_t y = 0; y < height_; ++y) {
      for (int64_t x = 0; x < width_; ++x) {
        const double inside = distance_inside(static_cast<double>(x), static_cast<double>(y));
        const double fringe = hair(static_cast<double>(x), static_cast<double>(y));
        const double truth = ramp((inside + 26.0 * fringe) / 22.0);
        const bool unknown = std::abs(inside) < 55.0;
        const double guess = ramp((inside + 15.0 * fringe + 2.0) / 30.0);
        mattes.truth.push_back(to_byte(unknown ? truth : std::round(truth)));
        mattes.prediction.push_back(
            to_byte(unknown ? guess + 0.06 * rng.normal() : std::round(truth)));
        mattes.trimap.push_back(unknown ? 128 : mattes.truth.back());
      }
    }
    return mattes;
  }

 private:
  static uint8_t to_byte(double alpha) {
    return static_cast<uint8_t>(std::lround(255.0 * std::clamp(alpha, 0.0, 1.0)));
  }

  static double ramp(double x) {
    const double t = std::clamp(0.5 + 0.5 * x, 0.0, 1.0);
    return t * t * (3.0 - 2.0 * t);
  }

  /// About how many pixels of a picture of height 1080 a place lies inside an ellipse.
  [[nodiscard]] double ellipse(double x, double y, double centre, double wide, double high) const {
    const double scale = 1080.0 / static_cast<double>(height_);
    const double dx = (x - 0.5 * static_cast<double>(width_)) * scale;
    const double dy = y * scale - centre;
    const double radius = std::hypot(dx / wide, dy / high);
    return (1.0 - radius) * std::min(wide, high);
  }

  [[nodiscard]] double distance_inside(double x, double y) const {
    return std::max(ellipse(x, y, 430.0, 250.0, 320.0), ellipse(x, y, 1180.0, 640.0, 420.0));
  }

  /// Strands, -1 to 1: fine across the edge's direction, long along it.
  [[nodiscard]] double hair(double x, double y) const {
    const double dx = x - 0.5 * static_cast<double>(width_);
    const double dy = y - 0.4 * static_cast<double>(height_);
    const double angle = std::atan2(dy, dx);
    const double radius = std::hypot(dx, dy);
    return 0.5 * std::sin(190.0 * angle + 0.02 * radius) +
           0.3 * std::sin(411.0 * angle - 0.05 * radius) + 0.2 * std::sin(0.11 * x + 0.07 * y);
  }

  int64_t width_;
  int64_t height_;
};

/// Values and trimap drawn at random, each pixel for itself.
inline Mattes noise(int64_t width, int64_t height) {
  Rng rng{1};
  Mattes mattes{.width = width, .height = height};
  for (int64_t i = 0; i < width * height; ++i) {
    mattes.prediction.push_back(static_cast<uint8_t>(rng.below(256)));
    mattes.truth.push_back(static_cast<uint8_t>(rng.below(256)));
    mattes.trimap.push_back(static_cast<uint8_t>(rng.below(256)));
  }
  return mattes;
}

}  // namespace muster::bench
