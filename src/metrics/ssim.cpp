#include "src/metrics/ssim_internal.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace muster {

namespace {

/// Sums of a window's pixels: of both pictures, their squares and their product.
using Moments = std::array<double, 5>;

/// Index -k is k, and size - 1 + k is size - 1 - k.
size_t mirrored(int64_t i, size_t size) {
  const auto last = static_cast<int64_t>(size) - 1;
  return static_cast<size_t>(i < 0 ? -i : i > last ? 2 * last - i : i);
}

/// The weighed mean of the moments at mirrored places around `centre`; `moments_at(i)` has those
/// of place i.
template <typename At>
Moments filter(std::span<const double> window, size_t centre, size_t size, const At& moments_at) {
  Moments sums{};
  const auto half = static_cast<int64_t>(window.size() / 2);
  for (size_t k = 0; k < window.size(); ++k) {
    const auto place = static_cast<int64_t>(centre) + static_cast<int64_t>(k) - half;
    const Moments moments = moments_at(mirrored(place, size));
    for (size_t m = 0; m < sums.size(); ++m) {
      sums[m] += window[k] * moments[m];
    }
  }
  return sums;
}

double local_ssim(const Moments& means, const StructuralSimilarityIndexMeasureOptions& options) {
  const double c1 = options.k1 * options.data_range * (options.k1 * options.data_range);
  const double c2 = options.k2 * options.data_range * (options.k2 * options.data_range);
  const auto [one, other, one_squared, other_squared, product] = means;
  const double variances =
      std::max(one_squared - one * one, 0.0) + std::max(other_squared - other * other, 0.0);
  const double covariance = product - one * other;
  return (2.0 * one * other + c1) * (2.0 * covariance + c2) /
         ((one * one + other * other + c1) * (variances + c2));
}

}  // namespace

std::vector<double> ssim_window(const StructuralSimilarityIndexMeasureOptions& options) {
  if (!options.gaussian_kernel) {
    const auto side = static_cast<size_t>(options.kernel_size);
    return std::vector<double>(side, 1.0 / static_cast<double>(side));
  }
  const auto half = int64_t{std::llround(3.5 * options.sigma)};
  std::vector<double> window;
  double sum = 0.0;
  for (int64_t i = -half; i <= half; ++i) {
    const double distance = static_cast<double>(i) / options.sigma;
    window.push_back(std::exp(-distance * distance / 2.0));
    sum += window.back();
  }
  for (double& weight : window) {
    weight /= sum;
  }
  return window;
}

double ssim_sum(std::span<const double> one, std::span<const double> other, size_t width,
                std::span<const double> window,
                const StructuralSimilarityIndexMeasureOptions& options) {
  const size_t height = one.size() / width;
  std::vector<Moments> column(width);  // one row, filtered downwards
  double sum = 0.0;
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      column[x] = filter(window, y, height, [&](size_t row) {
        const double a = one[row * width + x];
        const double b = other[row * width + x];
        return Moments{a, b, a * a, b * b, a * b};
      });
    }
    for (size_t x = 0; x < width; ++x) {
      sum += local_ssim(filter(window, x, width, [&](size_t at) { return column[at]; }), options);
    }
  }
  return sum;
}

}  // namespace muster
