#include <muster/base/check.h>
#include <muster/matting/errors.h>

#include "src/matting/kernels_internal.h"
#include "src/matting/values_internal.h"
#include "src/matting/workspace_internal.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {

MattingWorkspace::MattingWorkspace() : buffers_{std::make_unique<Buffers>()} {}
MattingWorkspace::~MattingWorkspace() = default;
MattingWorkspace::MattingWorkspace(MattingWorkspace&&) noexcept = default;
MattingWorkspace& MattingWorkspace::operator=(MattingWorkspace&&) noexcept = default;

namespace {

constexpr int64_t most_pixels = int64_t{1} << 30;

/// Says where a value lies that is not in [0, 1].
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
}

template <typename T>
Sums<T> value_sums(const Picture<T>& prediction, const Picture<T>& truth,
                   const std::optional<Picture8>& trimap, MattingProfile profile,
                   MattingWorkspace::Buffers& buffers) {
  const int64_t width = prediction.width;
  const auto& kernels = buffers.kernels->rows<T>();
  auto& connectivity = buffers.connectivity;
  connectivity.begin(width, prediction.height, profile, *buffers.kernels);
  for (int64_t y = 0; y < prediction.height; ++y) {
    const bool valid =
        kernels.levels(prediction.row(y), truth.row(y), width, connectivity.row_to_fill());
    if (!valid) {
      check_values(prediction, "the prediction");
      check_values(truth, "the truth");
    }
    connectivity.add_row();
  }
  connectivity.solve();

  Sums<T> sums;
  for (int64_t y = 0; y < prediction.height; ++y) {
    const uint8_t* tenths = connectivity.take_row();
    kernels.add_sums(prediction.row(y), truth.row(y), trimap ? trimap->row(y) : nullptr, tenths,
                     width, sums);
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
  const auto grad =
      buffers.gradient.sums(prediction, truth, trimap, options.profile, *buffers.kernels);
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
