#pragma once

#include "src/matting/values_internal.h"

#include <cstdint>
#include <type_traits>

namespace muster {

/// Sums over one region: of integers exact, of doubles in an order that depends on the place of the
/// pixels alone.
template <typename T>
struct RegionSums {
  using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

  int64_t n = 0;
  Sum sad = 0;
  Sum sse = 0;
  Sum conn = 0;
};

template <typename T>
struct Sums {
  RegionSums<T> unknown;
  RegionSums<T> all;
};

/// What is done to the values of a row. Nothing is read or written beyond `width` values, but for
/// rows of levels and tenths, which are whole blocks.
template <typename T>
struct RowKernels {
  static constexpr int64_t block = 32;  ///< values

  /// How many of the ten thresholds both mattes reach; 0 from `width` to the end of the last block.
  /// False where a value is not in [0, 1], which integers always are.
  bool (*levels)(const T* prediction, const T* truth, int64_t width, uint8_t* levels);
  /// Adds a row. `tenths`: the l map, whole blocks. `trimap`: null where there is none.
  void (*add_sums)(const T* prediction, const T* truth, const uint8_t* trimap,
                   const uint8_t* tenths, int64_t width, Sums<T>& sums);
  void (*to_double)(const T* values, int64_t width, double* out);
  /// Widens [low, high] to hold the row.
  void (*widen_range)(const T* values, int64_t width, T& low, T& high);
};

/// One row of a picture's strip after the filter along x. The rows above and below it that the
/// filter along y reaches lie before and after it, each `StripKernels::columns` values.
struct StripRow {
  const double* smooth;
  const double* derived;
};

/// (|grad prediction| - |grad truth|)^2, summed by lane.
struct LaneSums {
  double all[4] = {};
  double unknown[4] = {};
};

/// One filter over a strip of columns; pointers are to its first column.
struct StripKernels {
  static constexpr int64_t columns = 64;

  /// `values` is readable for the filter's radius on both sides. What comes out is written again
  /// 2 radius + 1 rows on.
  void (*along_row)(const double* values, double* smooth, double* derived);
  /// `trimap`: null where there is none.
  void (*add_errors)(const StripRow& prediction, const StripRow& truth, const uint8_t* trimap,
                     LaneSums& sums);
  /// The same with a gradient of 0 in the other picture.
  void (*add_squares)(const StripRow& row, const uint8_t* trimap, LaneSums& sums);
};

/// The inner loops, for one instruction set. All sets give the same bits.
struct Kernels {
  RowKernels<uint8_t> bytes;
  RowKernels<uint16_t> words;
  RowKernels<float> floats;
  RowKernels<double> doubles;
  StripKernels unit;      ///< UnitFilter
  StripKernels gaussian;  ///< GaussianFilter

  /// Bit x of `bits`: row[x] differs from row[x - 1]. 64 * `words` values, and the one before them.
  void (*changes)(const uint8_t* row, int64_t words, uint64_t* bits);
  /// Bit x of `bits`: a plateau of min(above, here) that is higher than what lies on both sides of
  /// it ends before x. 64 * `words` values; the one before them is 0 in both rows.
  void (*peak_ends)(const uint8_t* above, const uint8_t* here, int64_t words, uint64_t* bits);
  /// (value - lowest) / range.
  void (*stretch)(double* values, int64_t count, double lowest, double range);

  template <typename T>
  [[nodiscard]] const RowKernels<T>& rows() const {
    if constexpr (std::is_same_v<T, uint8_t>) {
      return bytes;
    } else if constexpr (std::is_same_v<T, uint16_t>) {
      return words;
    } else if constexpr (std::is_same_v<T, float>) {
      return floats;
    } else {
      return doubles;
    }
  }
};

const Kernels& portable_kernels();
/// Null where the processor, or the build, lacks AVX2.
const Kernels* avx2_kernels();
const Kernels& best_kernels();

}  // namespace muster
