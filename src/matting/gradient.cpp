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

/// The columns from `left` on. Rows are asked for from top to bottom.
template <typename Filter, typename T>
class Gradient::Strip {
 public:
  Strip(const Source<T>& prediction, const Source<T>& truth, const std::optional<Picture8>& trimap,
        int64_t left)
      : prediction_{prediction},
        truth_{truth},
        trimap_{trimap},
        left_{left},
        first_{std::max<int64_t>(0, left - Filter::radius)},
        count_{std::min(prediction.picture.width, left + columns + Filter::radius) - first_},
        maps_alike_{prediction.maps_as(truth)} {}

  /// Whether both pictures are equal, or flat, in all that row y of the gradient depends on.
  bool adds_nothing(int64_t y) {
    const int64_t bottom = std::min(prediction_.picture.height - 1, y + Filter::radius);
    for (; seen_ <= bottom; ++seen_) {
      prefetch(prediction_.picture, seen_ + rows_ahead);
      prefetch(truth_.picture, seen_ + rows_ahead);
      look_at(seen_);
    }
    const int64_t rows = bottom - std::max<int64_t>(0, y - Filter::radius) + 1;
    return equal_rows_ >= rows || flat_rows_ >= rows;
  }

  /// Brings all rows that row y depends on into the rings.
  void filter_to(int64_t y, const StripKernels& filter, Side& prediction, Side& truth) {
    for (int64_t row = std::max(filtered_, y - Filter::radius); row <= y + Filter::radius; ++row) {
      filter_row(prediction_, row, filter, prediction);
      filter_row(truth_, row, filter, truth);
    }
    filtered_ = y + Filter::radius + 1;
    if (trimap_ && y + rows_ahead < trimap_->height) {
      __builtin_prefetch(trimap_->row(y + rows_ahead) + left_);
    }
  }

  static StripRow row(const Side& side, int64_t y) {
    const int64_t at = (slot(y - Filter::radius) + Filter::radius) * columns;
    return {.smooth = side.smooth + at, .derived = side.derived + at};
  }

 private:
  static int64_t slot(int64_t y) { return (y + Filter::radius) % ring_rows<Filter>; }

  /// The processor does not see by itself which rows come next: they lie too far apart.
  [[gnu::always_inline]] void prefetch(const Picture<T>& picture, int64_t y) const {
    if (y < picture.height) {
      const T* row = picture.row(y) + first_;
      for (int64_t x = 0; x < count_; x += cache_line / static_cast<int64_t>(sizeof(T))) {
        __builtin_prefetch(row + x);
      }
    }
  }

  void look_at(int64_t y) {
    const auto bytes = static_cast<size_t>(count_) * sizeof(T);
    const T* p = prediction_.picture.row(y) + first_;
    const T* t = truth_.picture.row(y) + first_;
    if (maps_alike_ && std::memcmp(p, t, bytes) == 0) {
      ++equal_rows_;
      flat_rows_ = 0;
      return;
    }
    equal_rows_ = 0;
    const auto is_flat = [&](const T* row) {
      return std::memcmp(row, row + 1, bytes - sizeof(T)) == 0;
    };
    if (!is_flat(p) || !is_flat(t)) {
      flat_rows_ = 0;
      return;
    }
    const bool goes_on = flat_rows_ > 0 && p[0] == prediction_.picture.row(y - 1)[first_] &&
                         t[0] == truth_.picture.row(y - 1)[first_];
    flat_rows_ = goes_on ? flat_rows_ + 1 : 1;
  }

  /// Row y, which may lie beyond the border.
  void filter_row(const Source<T>& source, int64_t y, const StripKernels& filter,
                  Side& side) const {
    const int64_t width = source.picture.width;
    const int64_t inner = Filter::inside(y, source.picture.height);
    double* values = side.values;  // of the column left_ - radius
    const auto column = [&](int64_t x) -> double& { return values[x - left_ + Filter::radius]; };
    source.copy(inner, first_, count_, &column(first_));
    for (int64_t x = left_ - Filter::radius; x < 0; ++x) {
      column(x) = border(source, inner, Filter::inside(x, width));
    }
    const int64_t end = std::min(width + Filter::radius, left_ + columns + Filter::radius);
    for (int64_t x = width; x < end; ++x) {
      column(x) = border(source, inner, Filter::inside(x, width));
    }
    const int64_t at = slot(y) * columns;
    filter.along_row(values + Filter::radius, &side.smooth[at], &side.derived[at]);
    if (width < left_ + columns) {
      clear_from(width - left_, &side.smooth[at]);
      clear_from(width - left_, &side.derived[at]);
    }
  }

  /// Beyond the picture both sides have gradient 0.
  static void clear_from(int64_t column, double* row) {
    for (double* turn : {row, row + ring_rows<Filter> * columns}) {
      std::fill(turn + column, turn + columns, 0.0);
    }
  }

  static double border(const Source<T>& source, int64_t y, int64_t x) {
    double value = 0.0;
    source.copy(y, x, 1, &value);
    return value;
  }

  const Source<T>& prediction_;
  const Source<T>& truth_;
  const std::optional<Picture8>& trimap_;
  int64_t left_;
  int64_t first_;  // of the columns that the strip depends on
  int64_t count_;
  bool maps_alike_;           // equal values are equal after the map too
  int64_t seen_ = 0;          // rows before it have been looked at
  int64_t equal_rows_ = 0;    // so many rows before `seen_` are equal
  int64_t flat_rows_ = 0;     // so many rows before `seen_` are flat and one like the other
  int64_t filtered_ = -1000;  // rows before it, a window of them, are in the rings
};

template <typename Filter, typename T>
GradientSums Gradient::sweep(const Source<T>& prediction, const Source<T>& truth,
                             const std::optional<Picture8>& trimap, const StripKernels& filter) {
  const int64_t width = prediction.picture.width;
  GradientSums sums;
  for (int64_t left = 0; left < width; left += columns) {
    Strip<Filter, T> strip{prediction, truth, trimap, left};
    LaneSums lanes;
    for (int64_t y = 0; y < prediction.picture.height; ++y) {
      if (strip.adds_nothing(y)) {
        continue;
      }
      strip.filter_to(y, filter, prediction_, truth_);
      const uint8_t* unknown = trimap ? trimap->row(y) + left : nullptr;
      uint8_t end_of_row[columns] = {};
      if (trimap && width - left < columns) {
        unknown = static_cast<const uint8_t*>(
            std::memcpy(end_of_row, unknown, static_cast<size_t>(width - left)));
      }
      filter.add_errors(strip.row(prediction_, y), strip.row(truth_, y), unknown, lanes);
    }
    sums.all += total(lanes.all);
    sums.unknown += total(lanes.unknown);
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
