#include "src/matting/gradient_internal.h"

#include "src/matting/gradient_filters_internal.h"
#include "src/matting/values_internal.h"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr int64_t columns = StripKernels::columns;
constexpr int64_t rows_ahead = 8;
constexpr int64_t cache_line = 64;

template <typename Filter>
constexpr int64_t ring_rows = 2 * Filter::radius + 1;

double total(const double (&lanes)[4]) { return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]); }

}  // namespace

/// The columns of a trimap from `left` on.
struct Gradient::TrimapStrip {
  const std::optional<Picture8>& trimap;
  int64_t left;
  uint8_t end_of_row[columns] = {};  // of a strip that reaches beyond the picture

  TrimapStrip(const std::optional<Picture8>& whole, int64_t first) : trimap{whole}, left{first} {}

  /// Null without a trimap.
  const uint8_t* row(int64_t y) {
    if (!trimap) {
      return nullptr;
    }
    if (y + rows_ahead < trimap->height) {
      __builtin_prefetch(trimap->row(y + rows_ahead) + left);
    }
    const uint8_t* values = trimap->row(y) + left;
    if (trimap->width - left >= columns) {
      return values;
    }
    std::copy_n(values, trimap->width - left, end_of_row);
    return end_of_row;
  }
};

/// A picture and what is done to its values before the filter.
template <typename T>
struct Gradient::Source {
  const Picture<T>& picture;
  const Kernels& kernels;
  bool stretched = false;
  double lowest = 0.0;
  double range = 1.0;

  /// The values as they are.
  Source(const Picture<T>& plain, const Kernels& all) : picture{plain}, kernels{all} {}

  /// Values mapped so that the picture's minimum becomes 0 and its maximum 1; all 0 for a flat
  /// picture.
  static Source stretch(const Picture<T>& picture, const Kernels& kernels) {
    Source source{picture, kernels};
    T low = picture.row(0)[0];
    T high = low;
    for (int64_t y = 0; y < picture.height; ++y) {
      kernels.rows<T>().widen_range(picture.row(y), picture.width, low, high);
    }
    source.stretched = true;
    source.lowest = static_cast<double>(low);
    source.range = static_cast<double>(high) - static_cast<double>(low);
    return source;
  }

  [[nodiscard]] bool maps_as(const Source& other) const {
    return lowest == other.lowest && range == other.range;
  }

  void copy(int64_t y, int64_t first, int64_t count, double* out) const {
    kernels.rows<T>().to_double(picture.row(y) + first, count, out);
    if (stretched && range > 0.0) {
      kernels.stretch(out, count, lowest, range);
    } else if (stretched) {
      std::fill_n(out, count, 0.0);
    }
  }
};

/// One picture in the columns from `left` on. Rows are asked for from top to bottom.
template <typename Filter, typename T>
class Gradient::Strip {
 public:
  Strip(const Source<T>& source, int64_t left, Rings& rings)
      : source_{source},
        rings_{rings},
        left_{left},
        first_{std::max<int64_t>(0, left - Filter::radius)},
        count_{std::min(source.picture.width, left + columns + Filter::radius) - first_} {}

  /// The next row, from row 0 on.
  void look_at(int64_t y) {
    prefetch(y + rows_ahead);
    const T* row = values(y);
    const bool is_flat = std::memcmp(row, row + 1, bytes() - sizeof(T)) == 0;
    const bool goes_on = flat_rows_ > 0 && row[0] == *values(y - 1);
    flat_rows_ = is_flat ? (goes_on ? flat_rows_ + 1 : 1) : 0;
  }

  /// Whether the last rows that were looked at, so many, have one value.
  [[nodiscard]] bool is_flat(int64_t rows) const { return flat_rows_ >= rows; }

  [[nodiscard]] bool equals(const Strip& other, int64_t y) const {
    return source_.maps_as(other.source_) && std::memcmp(values(y), other.values(y), bytes()) == 0;
  }

  /// Row y of the rings, with all rows that it depends on.
  StripRow row(int64_t y, const StripKernels& filter) {
    for (int64_t row = std::max(filtered_, y - Filter::radius); row <= y + Filter::radius; ++row) {
      filter_row(row, filter);
    }
    filtered_ = y + Filter::radius + 1;
    const int64_t at = (slot(y - Filter::radius) + Filter::radius) * columns;
    return {.smooth = rings_.smooth + at, .derived = rings_.derived + at};
  }

 private:
  static int64_t slot(int64_t y) { return (y + Filter::radius) % ring_rows<Filter>; }

  [[nodiscard]] const T* values(int64_t y) const { return source_.picture.row(y) + first_; }
  [[nodiscard]] size_t bytes() const { return static_cast<size_t>(count_) * sizeof(T); }

  /// The processor does not see by itself which rows come next: they lie too far apart.
  [[gnu::always_inline]] void prefetch(int64_t y) const {
    if (y < source_.picture.height) {
      for (int64_t x = 0; x < count_; x += cache_line / static_cast<int64_t>(sizeof(T))) {
        __builtin_prefetch(values(y) + x);
      }
    }
  }

  /// Row y, which may lie beyond the border.
  void filter_row(int64_t y, const StripKernels& filter) {
    const int64_t width = source_.picture.width;
    const int64_t inner = Filter::inside(y, source_.picture.height);
    const auto column = [&](int64_t x) { return rings_.values + (x - left_ + Filter::radius); };
    source_.copy(inner, first_, count_, column(first_));
    for (int64_t x = left_ - Filter::radius; x < 0; ++x) {
      source_.copy(inner, Filter::inside(x, width), 1, column(x));
    }
    const int64_t end = std::min(width, left_ + columns) + Filter::radius;
    for (int64_t x = width; x < end; ++x) {
      source_.copy(inner, Filter::inside(x, width), 1, column(x));
    }
    const int64_t at = slot(y) * columns;
    filter.along_row(rings_.values + Filter::radius, rings_.smooth + at, rings_.derived + at);
    // Beyond the picture the gradient is 0.
    if (width < left_ + columns) {
      clear_from(width - left_, rings_.smooth + at);
      clear_from(width - left_, rings_.derived + at);
    }
  }

  static void clear_from(int64_t column, double* row) {
    for (double* turn : {row, row + ring_rows<Filter> * columns}) {
      std::fill(turn + column, turn + columns, 0.0);
    }
  }

  const Source<T>& source_;
  Rings& rings_;
  int64_t left_;
  int64_t first_;  // of the columns that the strip depends on
  int64_t count_;
  int64_t flat_rows_ = 0;     // so many rows, to the last that was looked at, have one value
  int64_t filtered_ = -1000;  // rows before it, a window of them, are in the rings
};

template <typename Filter, typename T>
GradientSums Gradient::sweep(const Source<T>& prediction, const Source<T>& truth,
                             const std::optional<Picture8>& trimap, const StripKernels& filter) {
  GradientSums sums;
  for (int64_t left = 0; left < prediction.picture.width; left += columns) {
    Strip<Filter, T> p{prediction, left, prediction_};
    Strip<Filter, T> t{truth, left, truth_};
    const auto lanes =
        strip_sums(p, t, TrimapStrip{trimap, left}, prediction.picture.height, filter);
    sums.all += total(lanes.all);
    sums.unknown += total(lanes.unknown);
  }
  return sums;
}

template <typename Filter, typename T>
LaneSums Gradient::strip_sums(Strip<Filter, T>& prediction, Strip<Filter, T>& truth,
                              TrimapStrip trimap, int64_t height, const StripKernels& filter) {
  LaneSums sums;
  int64_t seen = 0;        // rows before it have been looked at
  int64_t equal_rows = 0;  // so many of them, to the last one, are equal
  for (int64_t y = 0; y < height; ++y) {
    const int64_t bottom = std::min(height - 1, y + Filter::radius);
    for (; seen <= bottom; ++seen) {
      prediction.look_at(seen);
      truth.look_at(seen);
      equal_rows = prediction.equals(truth, seen) ? equal_rows + 1 : 0;
    }
    const int64_t rows = bottom - std::max<int64_t>(0, y - Filter::radius) + 1;
    const bool p_is_flat = prediction.is_flat(rows);
    const bool t_is_flat = truth.is_flat(rows);
    if (equal_rows >= rows || (p_is_flat && t_is_flat)) {
      continue;
    }
    const uint8_t* unknown = trimap.row(y);
    if (p_is_flat || t_is_flat) {
      filter.add_squares((p_is_flat ? truth : prediction).row(y, filter), unknown, sums);
    } else {
      filter.add_errors(prediction.row(y, filter), truth.row(y, filter), unknown, sums);
    }
  }
  return sums;
}

template <typename T>
GradientSums Gradient::sums(const Picture<T>& prediction, const Picture<T>& truth,
                            const std::optional<Picture8>& trimap, MattingProfile profile,
                            const Kernels& kernels) {
  if (profile == MattingProfile::matlab) {
    return sweep<UnitFilter>(Source<T>::stretch(prediction, kernels),
                             Source<T>::stretch(truth, kernels), trimap, kernels.unit);
  }
  const Source<T> p{prediction, kernels};
  const Source<T> t{truth, kernels};
  const auto sums = profile == MattingProfile::p3m
                        ? sweep<GaussianFilter>(p, t, trimap, kernels.gaussian)
                        : sweep<UnitFilter>(p, t, trimap, kernels.unit);
  constexpr double full = full_scale<T>();
  constexpr double scale = full * full;
  return {sums.unknown / scale, sums.all / scale};
}

template GradientSums Gradient::sums(const Picture8&, const Picture8&,
                                     const std::optional<Picture8>&, MattingProfile,
                                     const Kernels&);
template GradientSums Gradient::sums(const Picture16&, const Picture16&,
                                     const std::optional<Picture8>&, MattingProfile,
                                     const Kernels&);
template GradientSums Gradient::sums(const PictureF&, const PictureF&,
                                     const std::optional<Picture8>&, MattingProfile,
                                     const Kernels&);
template GradientSums Gradient::sums(const PictureD&, const PictureD&,
                                     const std::optional<Picture8>&, MattingProfile,
                                     const Kernels&);

}  // namespace muster
