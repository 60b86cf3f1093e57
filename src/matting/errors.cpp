#include <muster/base/check.h>
#include <muster/matting/errors.h>

#include "src/matting/connectivity_internal.h"
#include "src/matting/gradient_internal.h"
#include "src/matting/values_internal.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {

struct MattingWorkspace::Buffers {
  Connectivity connectivity;
  Gradient gradient;
  std::vector<uint8_t> levels;  // one row
};

MattingWorkspace::MattingWorkspace() : buffers_{std::make_unique<Buffers>()} {}
MattingWorkspace::~MattingWorkspace() = default;
MattingWorkspace::MattingWorkspace(MattingWorkspace&&) noexcept = default;
MattingWorkspace& MattingWorkspace::operator=(MattingWorkspace&&) noexcept = default;

namespace {

constexpr int64_t most_pixels = int64_t{1} << 30;

template <typename T>
void check_values(const Picture<T>& picture, std::string_view what) {
  for (int64_t y = 0; y < picture.height; ++y) {
    const T* row = picture.row(y);
    const T* bad = std::find_if_not(row, row + picture.width,
                                    [](T value) { return value >= T{0} && value <= T{1}; });
    if (bad != row + picture.width) {
      fail(ErrorKind::data, "{} has the value {} at row {}, column {}; alpha is 0 to 1", what,
           static_cast<double>(*bad), y, bad - row);
    }
  }
}

template <typename T>
void check_pictures(const Picture<T>& prediction, const Picture<T>& truth,
                    const std::optional<Picture8>& trimap) {
  const auto check_size = [&](auto& other, std::string_view what) {
    check(prediction.width == other.width && prediction.height == other.height, ErrorKind::data,
          "the prediction has {}x{} pixels and the {} {}x{} (width x height); they must be equal, "
          "nothing is resized",
          prediction.width, prediction.height, what, other.width, other.height);
  };
  check_size(truth, "truth");
  if (trimap) {
    check_size(*trimap, "trimap");
  }
  check(prediction.width > 0 && prediction.height > 0, ErrorKind::data,
        "a picture of {}x{} pixels (width x height) has no matting errors", prediction.width,
        prediction.height);
  check(prediction.width <= most_pixels / prediction.height, ErrorKind::data,
        "a picture of {}x{} pixels (width x height) has more than {} pixels", prediction.width,
        prediction.height, most_pixels);
  if constexpr (!std::is_integral_v<T>) {
    check_values(prediction, "the prediction");
    check_values(truth, "the truth");
  }
}

/// Sums over one region: of integers exact, of doubles in the order of the pixels.
template <typename T>
struct RegionSums {
  using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

  int64_t n = 0;
  Sum sad = 0;
  Sum sse = 0;
  Sum conn = 0;

  void operator+=(const RegionSums& other) {
    n += other.n;
    sad += other.sad;
    sse += other.sse;
    conn += other.conn;
  }
};

template <typename T>
struct Sums {
  RegionSums<T> unknown;
  RegionSums<T> all;
};

/// How many of the ten thresholds both mattes reach.
template <typename T>
void levels_of_row(const T* prediction, const T* truth, int64_t width, uint8_t* levels) {
  const auto least = thresholds<T>();
  for (int64_t x = 0; x < width; ++x) {
    const T both = std::min(prediction[x], truth[x]);
    uint8_t level = 0;
    for (const T threshold : least) {
      level += both >= threshold ? 1 : 0;
    }
    levels[x] = level;
  }
}

template <typename T>
Sums<T> sums_of_row(const T* prediction, const T* truth, const uint8_t* trimap,
                    const uint8_t* tenths, int64_t width) {
  using Sum = typename RegionSums<T>::Sum;
  Sums<T> row;
  row.all.n = width;
  for (int64_t x = 0; x < width; ++x) {
    const Sum difference = std::abs(Sum{prediction[x]} - Sum{truth[x]});
    const Sum square = difference * difference;
    const Sum conn = std::abs(distance(prediction[x], tenths[x]) - distance(truth[x], tenths[x]));
    row.all.sad += difference;
    row.all.sse += square;
    row.all.conn += conn;
    if (trimap != nullptr && is_unknown(trimap[x])) {
      row.unknown.n += 1;
      row.unknown.sad += difference;
      row.unknown.sse += square;
      row.unknown.conn += conn;
    }
  }
  return row;
}

template <typename T>
Sums<T> value_sums(const Picture<T>& prediction, const Picture<T>& truth,
                   const std::optional<Picture8>& trimap, MattingProfile profile,
                   MattingWorkspace::Buffers& buffers) {
  const int64_t width = prediction.width;
  auto& connectivity = buffers.connectivity;
  buffers.levels.resize(static_cast<size_t>(width));
  uint8_t* levels = buffers.levels.data();

  connectivity.begin(width, prediction.height);
  for (int64_t y = 0; y < prediction.height; ++y) {
    levels_of_row(prediction.row(y), truth.row(y), width, levels);
    connectivity.add_row(levels);
  }
  connectivity.solve(profile);

  Sums<T> sums;
  for (int64_t y = 0; y < prediction.height; ++y) {
    connectivity.take_row(levels);
    const auto row = sums_of_row(prediction.row(y), truth.row(y), trimap ? trimap->row(y) : nullptr,
                                 levels, width);
    sums.unknown += row.unknown;
    sums.all += row.all;
  }
  return sums;
}

template <typename T>
RegionErrors region_errors(const RegionSums<T>& sums, double grad, MattingProfile profile) {
  RegionErrors region{.n = sums.n};
  if constexpr (std::is_integral_v<T>) {
    region.sums = ErrorSums{sums.sad, sums.sse, sums.conn};
  }
  if (sums.n > 0) {
    constexpr double full = full_scale<T>();
    region.values = ErrorValues{
        .sad = static_cast<double>(sums.sad) / (1000.0 * full),
        .mse = static_cast<double>(sums.sse) / (full * full * static_cast<double>(sums.n)),
        .grad = grad / (profile == MattingProfile::p3m ? 10.0 : 1000.0),
        .conn = static_cast<double>(sums.conn) /
                (std::is_integral_v<T> ? 10.0 * 1000.0 * full : 1000.0)};
  }
  return region;
}

template <typename T>
MattingErrors errors_of(const Picture<T>& prediction, const Picture<T>& truth,
                        const std::optional<Picture8>& trimap, const MattingOptions& options,
                        MattingWorkspace& workspace) {
  check_pictures(prediction, truth, trimap);
  auto& buffers = workspace.buffers();
  const auto sums = value_sums(prediction, truth, trimap, options.profile, buffers);
  const auto grad = buffers.gradient.sums(prediction, truth, trimap, options.profile);
  MattingErrors errors{.all = region_errors(sums.all, grad.all, options.profile)};
  if (trimap) {
    errors.unknown = region_errors(sums.unknown, grad.unknown, options.profile);
  }
  return errors;
}

}  // namespace

MattingErrors matting_errors(const Picture8& prediction, const Picture8& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace) {
  return errors_of(prediction, truth, trimap, options, workspace);
}

MattingErrors matting_errors(const Picture16& prediction, const Picture16& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace) {
  return errors_of(prediction, truth, trimap, options, workspace);
}

MattingErrors matting_errors(const PictureF& prediction, const PictureF& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace) {
  return errors_of(prediction, truth, trimap, options, workspace);
}

MattingErrors matting_errors(const PictureD& prediction, const PictureD& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace) {
  return errors_of(prediction, truth, trimap, options, workspace);
}

}  // namespace muster
