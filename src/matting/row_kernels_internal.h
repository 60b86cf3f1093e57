#pragma once

#include "src/matting/kernels_internal.h"
#include "src/matting/simd_internal.h"

#include <cstddef>

// RowKernels for a policy. Rows are taken in blocks of 32 values; what is left over is copied into
// a block of zeros, which adds nothing.

namespace muster {

template <typename T>
constexpr int lanes_of = 32 / static_cast<int>(sizeof(T));

template <typename T>
using MaskOf =
    std::conditional_t<sizeof(T) == 1, int8_t,
                       std::conditional_t<sizeof(T) == 2, int16_t,
                                          std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>>;

constexpr int64_t row_block = 32;

/// Takes from `valid` the lanes that are not in [0, 1].
template <typename Simd, typename T>
[[gnu::always_inline]] inline void require_unit(const Vector<T, lanes_of<T>>& values,
                                                Vector<MaskOf<T>, lanes_of<T>>& valid) {
  using Lanes = Vector<T, lanes_of<T>>;
  Vector<MaskOf<T>, lanes_of<T>> mask;
  Simd::less_equal(mask, Lanes{}, values);
  valid &= mask;
  Simd::less_equal(mask, values, Lanes(T{1} - Lanes{}));
  valid &= mask;
}

/// The levels of a block; `valid` loses the lanes that are not in [0, 1].
template <typename Simd, typename T>
[[gnu::always_inline]] inline void levels_of_block(const T* prediction, const T* truth,
                                                   uint8_t* levels,
                                                   Vector<MaskOf<T>, lanes_of<T>>& valid) {
  using Lanes = Vector<T, lanes_of<T>>;
  using Masks = Vector<MaskOf<T>, lanes_of<T>>;
  constexpr auto at_least = thresholds<T>();
  for (int64_t x = 0; x < row_block; x += lanes_of<T>) {
    Lanes p;
    Lanes t;
    load(p, prediction + x);
    load(t, truth + x);
    if constexpr (!std::is_integral_v<T>) {
      require_unit<Simd, T>(p, valid);
      require_unit<Simd, T>(t, valid);
    }
    Masks mask;
    Simd::less_equal(mask, p, t);
    select(p, mask, p, t);
    Masks level{};
    for (const T least : at_least.least) {
      Simd::less_equal(mask, Lanes(least - Lanes{}), p);
      level -= mask;
    }
    store(levels + x, __builtin_convertvector(level, Vector<uint8_t, lanes_of<T>>));
  }
}

template <typename Simd, typename T>
bool levels_of_row(const T* prediction, const T* truth, int64_t width, uint8_t* levels) {
  Vector<MaskOf<T>, lanes_of<T>> valid = ~Vector<MaskOf<T>, lanes_of<T>>{};
  int64_t x = 0;
  for (; x + row_block <= width; x += row_block) {
    levels_of_block<Simd>(prediction + x, truth + x, levels + x, valid);
  }
  if (x < width) {
    T ends[2][row_block] = {};
    __builtin_memcpy(ends[0], prediction + x, static_cast<size_t>(width - x) * sizeof(T));
    __builtin_memcpy(ends[1], truth + x, static_cast<size_t>(width - x) * sizeof(T));
    levels_of_block<Simd>(ends[0], ends[1], levels + x, valid);
  }
  MaskOf<T> all = -1;
  for (int lane = 0; lane < lanes_of<T>; ++lane) {
    all &= valid[lane];
  }
  return all != 0;
}

/// Sums over pixels of integers, by lane. 4096 groups of eight fit.
template <typename Simd, typename T>
struct IntegerLanes {
  static constexpr int step = 8;
  using Lanes = Integers8;
  using Totals = Vector<uint32_t, step>;
  struct Region {
    Totals sad{};
    Totals square_low{};  // the low and the high 16 bits of each square
    Totals square_high{};
    Totals conn{};

    [[gnu::always_inline]] void add(const Lanes& difference, const Lanes& distance,
                                    const Lanes& mask) {
      const auto square = (Totals)difference * (Totals)difference & (Totals)mask;
      sad += (Totals)(difference & mask);
      square_low += square & 0xffff;
      square_high += square >> 16;
      conn += (Totals)(distance & mask);
    }

    [[gnu::always_inline]] void flush(RegionSums<T>& sums) {
      for (int lane = 0; lane < step; ++lane) {
        sums.sad += sad[lane];
        sums.sse += (int64_t{square_high[lane]} << 16) + square_low[lane];
        sums.conn += conn[lane];
      }
      *this = {};
    }
  };

  Region all;
  Region unknown;

  /// Ten times the distance above l, or 0 where it is not kept; full scale is 10 * `full`.
  [[gnu::always_inline]] static void keep(const Lanes& value, const Lanes& level, Lanes& kept) {
    constexpr int32_t full = full_scale<T>();
    const Lanes above = 10 * value - full * level;
    Simd::less_equal(kept, Lanes(3 * full - Lanes{}), Lanes(2 * above));
    kept &= above;
  }

  [[gnu::always_inline]] static void distance_between(const Lanes& one, const Lanes& two,
                                                      Lanes& out) {
    Lanes sign;
    Simd::less_equal(sign, one, two);
    out = ((one - two) ^ sign) - sign;
  }

  [[gnu::always_inline]] void add(const T* prediction, const T* truth, const uint8_t* tenths,
                                  const uint8_t* region, bool any_unknown) {
    Lanes p;
    Lanes t;
    Lanes level;
    Simd::widen(p, prediction);
    Simd::widen(t, truth);
    Simd::widen(level, tenths);
    Lanes kept_p;
    Lanes kept_t;
    keep(p, level, kept_p);
    keep(t, level, kept_t);
    Lanes difference;
    Lanes distance;
    distance_between(p, t, difference);
    distance_between(kept_p, kept_t, distance);
    all.add(difference, distance, Lanes{} - 1);
    if (any_unknown) {
      Lanes mask;
      Simd::widen_mask(mask, region);
      unknown.add(difference, distance, mask);
    }
  }
};

/// The same in double.
template <typename Simd, typename T>
struct DoubleLanes {
  static constexpr int step = 4;
  using Masks = Masks4;
  struct Region {
    Doubles4 sad{};
    Doubles4 sse{};
    Doubles4 conn{};

    [[gnu::always_inline]] void add(const Doubles4& difference, const Doubles4& distance,
                                    const Masks& mask) {
      sad += (Doubles4)((Masks)difference & mask);
      sse += (Doubles4)((Masks)(difference * difference) & mask);
      conn += (Doubles4)((Masks)distance & mask);
    }

    [[gnu::always_inline]] void flush(RegionSums<T>& sums) {
      sums.sad += (sad[0] + sad[2]) + (sad[1] + sad[3]);
      sums.sse += (sse[0] + sse[2]) + (sse[1] + sse[3]);
      sums.conn += (conn[0] + conn[2]) + (conn[1] + conn[3]);
      *this = {};
    }
  };

  Region all;
  Region unknown;

  [[gnu::always_inline]] static void keep(const Doubles4& value, const Doubles4& level,
                                          Doubles4& kept) {
    const Doubles4 above = value - level;
    Masks mask;
    Simd::less_equal(mask, Doubles4(0.15 - Doubles4{}), above);
    kept = (Doubles4)((Masks)above & mask);
  }

  [[gnu::always_inline]] static void distance_between(const Doubles4& one, const Doubles4& two,
                                                      Doubles4& out) {
    constexpr int64_t all_but_the_sign = 0x7fffffffffffffff;
    out = (Doubles4)((Masks)(one - two) & all_but_the_sign);
  }

  [[gnu::always_inline]] void add(const T* prediction, const T* truth, const uint8_t* tenths,
                                  const uint8_t* region, bool any_unknown) {
    Doubles4 p;
    Doubles4 t;
    Doubles4 level;
    Simd::widen(p, prediction);
    Simd::widen(t, truth);
    Simd::widen(level, tenths);
    level /= 10.0;
    Doubles4 kept_p;
    Doubles4 kept_t;
    keep(p, level, kept_p);
    keep(t, level, kept_t);
    Doubles4 difference;
    Doubles4 distance;
    distance_between(p, t, difference);
    distance_between(kept_p, kept_t, distance);
    all.add(difference, distance, Masks{} - 1);
    if (any_unknown) {
      Masks mask;
      Simd::widen_mask(mask, region);
      unknown.add(difference, distance, mask);
    }
  }
};

template <typename Simd, typename T>
using LanesOf =
    std::conditional_t<std::is_integral_v<T>, IntegerLanes<Simd, T>, DoubleLanes<Simd, T>>;

/// Whether a block's values are the same bits in both rows.
template <typename Simd, typename T>
[[gnu::always_inline]] inline bool equal_block(const T* prediction, const T* truth) {
  const auto* p = reinterpret_cast<const uint8_t*>(prediction);
  const auto* t = reinterpret_cast<const uint8_t*>(truth);
  Bytes32 differ{};
  for (size_t i = 0; i < sizeof(T); ++i) {
    Bytes32 one;
    Bytes32 two;
    load(one, p + 32 * i);
    load(two, t + 32 * i);
    differ |= one ^ two;
  }
  Bytes32 same;
  Simd::less_equal(same, differ, Bytes32{});
  return Simd::mask(same) == ~uint32_t{0};
}

/// 255 where the trimap is unknown, else 0. Gives those lanes as bits.
template <typename Simd>
[[gnu::always_inline]] inline uint32_t unknown_of_block(const uint8_t* trimap, uint8_t* region) {
  Bytes32 values;
  load(values, trimap);
  Bytes32 unknown;
  Simd::less_equal(unknown, Bytes32(values - first_unknown),
                   Bytes32(uint8_t{unknown_values - 1} - Bytes32{}));
  store(region, unknown);
  return Simd::mask(unknown);
}

template <typename Simd, typename T>
[[gnu::always_inline]] inline void add_sums_of_block(const T* prediction, const T* truth,
                                                     const uint8_t* trimap, const uint8_t* tenths,
                                                     LanesOf<Simd, T>& lanes, int64_t& n_unknown) {
  uint8_t region[row_block];
  uint32_t unknown = 0;
  if (trimap != nullptr) {
    unknown = unknown_of_block<Simd>(trimap, region);
    n_unknown += __builtin_popcount(unknown);
  }
  if (equal_block<Simd>(prediction, truth)) {
    return;
  }
  for (int64_t x = 0; x < row_block; x += LanesOf<Simd, T>::step) {
    lanes.add(prediction + x, truth + x, tenths + x, region + x, unknown != 0);
  }
}

template <typename Simd, typename T>
void add_sums_of_row(const T* prediction, const T* truth, const uint8_t* trimap,
                     const uint8_t* tenths, int64_t width, Sums<T>& sums) {
  constexpr int64_t flush_after = 1024 * row_block;
  LanesOf<Simd, T> lanes;
  int64_t x = 0;
  for (; x + row_block <= width; x += row_block) {
    add_sums_of_block<Simd>(prediction + x, truth + x, trimap != nullptr ? trimap + x : nullptr,
                            tenths + x, lanes, sums.unknown.n);
    if (x % flush_after == flush_after - row_block) {
      lanes.all.flush(sums.all);
      lanes.unknown.flush(sums.unknown);
    }
  }
  if (x < width) {
    const auto left = static_cast<size_t>(width - x);
    T ends[2][row_block] = {};
    uint8_t end_of_trimap[row_block] = {};
    __builtin_memcpy(ends[0], prediction + x, left * sizeof(T));
    __builtin_memcpy(ends[1], truth + x, left * sizeof(T));
    if (trimap != nullptr) {
      __builtin_memcpy(end_of_trimap, trimap + x, left);
    }
    add_sums_of_block<Simd>(ends[0], ends[1], trimap != nullptr ? end_of_trimap : nullptr,
                            tenths + x, lanes, sums.unknown.n);
  }
  lanes.all.flush(sums.all);
  lanes.unknown.flush(sums.unknown);
  sums.all.n += width;
}

template <typename Simd, typename T>
void row_to_double(const T* values, int64_t width, double* out) {
  int64_t x = 0;
  for (; x + 4 <= width; x += 4) {
    Doubles4 lanes;
    Simd::widen(lanes, values + x);
    store(out + x, lanes);
  }
  for (; x < width; ++x) {
    out[x] = static_cast<double>(values[x]);
  }
}

template <typename Simd, typename T>
void widen_range_by_row(const T* values, int64_t width, T& low, T& high) {
  using Lanes = Vector<T, lanes_of<T>>;
  Lanes lows;
  Lanes highs;
  fill(lows, low);
  fill(highs, high);
  int64_t x = 0;
  for (; x + lanes_of<T> <= width; x += lanes_of<T>) {
    Lanes lanes;
    load(lanes, values + x);
    Vector<MaskOf<T>, lanes_of<T>> mask;
    Simd::less_equal(mask, lanes, lows);
    select(lows, mask, lanes, lows);
    Simd::less_equal(mask, lanes, highs);
    select(highs, mask, highs, lanes);
  }
  const auto widen = [&](T least, T most) {
    low = least < low ? least : low;
    high = most > high ? most : high;
  };
  for (int lane = 0; lane < lanes_of<T>; ++lane) {
    widen(lows[lane], highs[lane]);
  }
  for (; x < width; ++x) {
    widen(values[x], values[x]);
  }
}

template <typename Simd, typename T>
RowKernels<T> make_row_kernels() {
  return {.levels = levels_of_row<Simd, T>,
          .add_sums = add_sums_of_row<Simd, T>,
          .to_double = row_to_double<Simd, T>,
          .widen_range = widen_range_by_row<Simd, T>};
}

}  // namespace muster
