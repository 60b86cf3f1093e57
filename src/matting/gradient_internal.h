#pragma once

#include <muster/matting/errors.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace muster {

/// Sums of (|grad prediction| - |grad truth|)^2 over a region, already on the scale of alpha.
struct GradientSums {
  double unknown = 0.0;
  double all = 0.0;
};

/// The gradient filters of two pictures in one sweep over rows. Separable: each row is smoothed and
/// derived along x into a ring of rows, and the rows of the ring are derived and smoothed along y.
/// Derivatives add up differences of values at equal distances, so that flat areas give exactly 0.
class Gradient {
 public:
  /// Without a trimap the sum over the unknown region is 0.
  template <typename T>
  GradientSums sums(const Picture<T>& prediction, const Picture<T>& truth,
                    const std::optional<Picture8>& trimap, MattingProfile profile);

 private:
  /// One picture's buffers. Rows are padded to whole blocks.
  struct Side {
    std::vector<double> padded;   // one row of values with its borders
    std::vector<double> smooth;   // ring of rows, smoothed along x
    std::vector<double> derived;  // ring of rows, derived along x
  };
  template <typename T>
  struct Source;
  template <typename Filter>
  struct Window;

  template <typename Filter, typename T>
  GradientSums sweep(const Source<T>& prediction, const Source<T>& truth,
                     const std::optional<Picture8>& trimap);
  template <typename Filter, typename T>
  void filter_row(const Source<T>& source, int64_t y, Side& side) const;

  Side prediction_;
  Side truth_;
  std::vector<double> weights_;  // 1 where a row is unknown, else 0
  int64_t pitch_ = 0;            // values of a padded row, without borders
};

}  // namespace muster
