#pragma once

#include "src/matting/gradient_filters_internal.h"
#include "src/matting/kernels_internal.h"
#include "src/matting/row_kernels_internal.h"
#include "src/matting/simd_internal.h"

// StripKernels for a policy and a filter. Derivatives add up differences of values at equal
// distances, so that what is flat gives exactly 0.

namespace muster {

/// out += sum over k = `first`.. of smooth[k] (values at distance k after + before).
template <typename Filter, int first>
[[gnu::always_inline]] inline void add_smoothed(const double* values, int64_t distance,
                                                Doubles4& out) {
  if constexpr (first <= Filter::radius) {
    Doubles4 after;
    Doubles4 before;
    load(after, values + first * distance);
    load(before, values - first * distance);
    out += Filter::smooth[first] * (after + before);
    add_smoothed<Filter, first + 1>(values, distance, out);
  }
}

template <typename Filter, int first>
[[gnu::always_inline]] inline void add_derived(const double* values, int64_t distance,
                                               Doubles4& out) {
  if constexpr (first <= Filter::radius) {
    Doubles4 after;
    Doubles4 before;
    load(after, values + first * distance);
    load(before, values - first * distance);
    out += Filter::derive[first] * (after - before);
    add_derived<Filter, first + 1>(values, distance, out);
  }
}

template <typename Filter>
[[gnu::always_inline]] inline void smooth(const double* values, int64_t distance, Doubles4& out) {
  load(out, values);
  out *= Filter::smooth[0];
  add_smoothed<Filter, 1>(values, distance, out);
}

template <typename Filter>
[[gnu::always_inline]] inline void derive(const double* values, int64_t distance, Doubles4& out) {
  Doubles4 before;
  load(out, values + distance);
  load(before, values - distance);
  out = Filter::derive[1] * (out - before);
  add_derived<Filter, 2>(values, distance, out);
}

template <typename Simd, typename Filter>
void filter_along_row(const double* values, double* smooth_out, double* derived_out) {
  constexpr int64_t turn = (2 * Filter::radius + 1) * StripKernels::columns;
  for (int64_t x = 0; x < StripKernels::columns; x += 4) {
    Doubles4 out;
    smooth<Filter>(values + x, 1, out);
    store(smooth_out + x, out);
    store(smooth_out + turn + x, out);
    derive<Filter>(values + x, 1, out);
    store(derived_out + x, out);
    store(derived_out + turn + x, out);
  }
}

/// The square of the gradient's magnitude.
template <typename Filter>
[[gnu::always_inline]] inline void square_of_gradient(const StripRow& row, int64_t x,
                                                      Doubles4& out) {
  Doubles4 along_y;
  smooth<Filter>(row.derived + x, StripKernels::columns, out);
  derive<Filter>(row.smooth + x, StripKernels::columns, along_y);
  out = out * out + along_y * along_y;
}

template <typename Simd>
[[gnu::always_inline]] inline bool find_unknown_of_strip(const uint8_t* trimap, uint8_t* unknown) {
  uint32_t any = 0;
  for (int64_t x = 0; x < StripKernels::columns; x += row_block) {
    any |= unknown_of_block<Simd>(trimap + x, unknown + x);
  }
  return any != 0;
}

template <typename Simd, typename Filter>
void add_errors_of_strip(const StripRow& prediction, const StripRow& truth, const uint8_t* trimap,
                         LaneSums& sums) {
  uint8_t unknown[StripKernels::columns];
  const bool any_unknown = trimap != nullptr && find_unknown_of_strip<Simd>(trimap, unknown);
  Doubles4 all;
  Doubles4 inside;
  load(all, sums.all);
  load(inside, sums.unknown);
  Doubles4 squares[2];
  square_of_gradient<Filter>(prediction, 0, squares[0]);
  square_of_gradient<Filter>(truth, 0, squares[1]);
  for (int64_t x = 0; x < StripKernels::columns; x += 4) {
    Doubles4 error = squares[0];
    Doubles4 other = squares[1];
    // Roots take as long as all the rest: the next squares are worked out beside them.
    if (x + 4 < StripKernels::columns) {
      square_of_gradient<Filter>(prediction, x + 4, squares[0]);
      square_of_gradient<Filter>(truth, x + 4, squares[1]);
    }
    Simd::square_root(error);
    Simd::square_root(other);
    error -= other;
    error *= error;
    all += error;
    if (any_unknown) {
      Masks4 mask;
      Simd::widen_mask(mask, unknown + x);
      inside += (Doubles4)((Masks4)error & mask);
    }
  }
  store(sums.all, all);
  store(sums.unknown, inside);
}

template <typename Simd, typename Filter>
void add_squares_of_strip(const StripRow& row, const uint8_t* trimap, LaneSums& sums) {
  uint8_t unknown[StripKernels::columns];
  const bool any_unknown = trimap != nullptr && find_unknown_of_strip<Simd>(trimap, unknown);
  Doubles4 all;
  Doubles4 inside;
  load(all, sums.all);
  load(inside, sums.unknown);
  for (int64_t x = 0; x < StripKernels::columns; x += 4) {
    Doubles4 square;
    square_of_gradient<Filter>(row, x, square);
    all += square;
    if (any_unknown) {
      Masks4 mask;
      Simd::widen_mask(mask, unknown + x);
      inside += (Doubles4)((Masks4)square & mask);
    }
  }
  store(sums.all, all);
  store(sums.unknown, inside);
}

template <typename Simd>
void stretch_values(double* values, int64_t count, double lowest, double range) {
  int64_t x = 0;
  for (; x + 4 <= count; x += 4) {
    Doubles4 lanes;
    load(lanes, values + x);
    store(values + x, (lanes - lowest) / range);
  }
  for (; x < count; ++x) {
    values[x] = (values[x] - lowest) / range;
  }
}

template <typename Simd, typename Filter>
StripKernels make_strip_kernels() {
  return {.along_row = filter_along_row<Simd, Filter>,
          .add_errors = add_errors_of_strip<Simd, Filter>,
          .add_squares = add_squares_of_strip<Simd, Filter>};
}

}  // namespace muster
