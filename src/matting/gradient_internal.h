#pragma once

#include <muster/matting/errors.h>

#include "src/matting/kernels_internal.h"

#include <cstdint>
#include <optional>

namespace muster {

/// Sums of (|grad prediction| - |grad truth|)^2 over a region, already on the scale of alpha.
struct GradientSums {
  double unknown = 0.0;
  double all = 0.0;
};

/// The gradient filters of two pictures in one sweep. Separable: each row is smoothed and derived
/// along x into a ring of rows, and the rows of the ring are derived and smoothed along y. The
/// picture is taken in strips of columns whose rings fit the first cache. Where, in a row of a
/// strip, both pictures are equal or flat as far as the filter reaches, nothing is worked out: it
/// would add exactly 0. Where one of them is flat, only the other is.
class Gradient {
 public:
  /// Without a trimap the sum over the unknown region is 0.
  template <typename T>
  GradientSums sums(const Picture<T>& prediction, const Picture<T>& truth,
                    const std::optional<Picture8>& trimap, MattingProfile profile,
                    const Kernels& kernels);

 private:
  /// One picture's rows of a strip. A ring holds each row twice, one turn apart, so that the rows
  /// around one lie in a line.
  struct Rings {
    static constexpr int64_t most_radius = 6;
    static constexpr int64_t columns = StripKernels::columns;
    static constexpr int64_t size = 2 * (2 * most_radius + 1) * columns;

    alignas(64) double values[columns + 2 * most_radius] = {};  // one row, with what lies around it
    alignas(64) double smooth[size] = {};                       // rows, smoothed along x
    alignas(64) double derived[size] = {};                      // rows, derived along x
  };
  template <typename T>
  struct Source;
  struct TrimapStrip;
  template <typename Filter, typename T>
  class Strip;

  template <typename Filter, typename T>
  GradientSums sweep(const Source<T>& prediction, const Source<T>& truth,
                     const std::optional<Picture8>& trimap, const StripKernels& filter);
  template <typename Filter, typename T>
  static LaneSums strip_sums(Strip<Filter, T>& prediction, Strip<Filter, T>& truth,
                             TrimapStrip trimap, int64_t height, const StripKernels& filter);

  Rings prediction_;
  Rings truth_;
};

}  // namespace muster
