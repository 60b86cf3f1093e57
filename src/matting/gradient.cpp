#include "src/matting/gradient_internal.h"
#include "src/matting/values_internal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace muster {

namespace {

/// Values that are computed together: a fixed count, so that the compiler can use vector registers
/// and the order of sums does not depend on them.
constexpr int block = 8;
using Block = std::array<double, block>;

// Both filters are products of a Gaussian g and its derivative, sigma 1.4. The literals are the
// correctly rounded values, so that the result does not depend on a library's exp.

/// g and x g for x = 0..4, each divided by its L2 norm over -4..4. Borders are replicated.
struct UnitFilter {
  static constexpr int radius = 4;
  static constexpr std::array smooth{0.6348176886345873, 0.4918805056712307, 0.22881863203111708,
                                     0.0639063982712179, 0.01071564903975442};
  static constexpr std::array derive{0.0, 0.4968886686448228, 0.46229677379028256,
                                     0.1936712156026914, 0.04329900879290055};

  static int64_t inside(int64_t at, int64_t count) { return std::clamp<int64_t>(at, 0, count - 1); }
};

/// g / sum(g) and x / sigma^2 times that for x = 0..6. Borders are reflected: d c b a | a b c d | d
/// c b a.
struct GaussianFilter {
  static constexpr int radius = 6;
  static constexpr std::array smooth{
      0.2849593902948748,    0.22079720131221917,   0.10271298207197102,   0.028686548300940817,
      0.0048100814952872955, 0.0004842256119485471, 2.9266060195736962e-05};
  static constexpr std::array derive{0.0,
                                     0.1126516333225608,
                                     0.10480916537956227,
                                     0.04390798209327676,
                                     0.009816492847525093,
                                     0.0012352694182360894,
                                     8.958998019103152e-05};

  static int64_t inside(int64_t at, int64_t count) {
    const int64_t period = 2 * count;
    const int64_t place = ((at % period) + period) % period;
    return place < count ? place : period - 1 - place;
  }
};

template <typename Filter>
constexpr int ring_rows = 2 * Filter::radius + 1;

/// sum over x of smooth[|x|] value[x] and of derive[x] value[x], for a block of neighbours. `at(k)`
/// points to the block's values at distance k.
template <typename Filter, typename At>
void smooth_block(const At& at, Block& out) {
  const double* centre = at(0);
  for (int j = 0; j < block; ++j) {
    out[j] = Filter::smooth[0] * centre[j];
  }
  for (int k = 1; k <= Filter::radius; ++k) {
    const double* after = at(k);
    const double* before = at(-k);
    for (int j = 0; j < block; ++j) {
      out[j] += Filter::smooth[k] * (after[j] + before[j]);
    }
  }
}

template <typename Filter, typename At>
void derive_block(const At& at, Block& out) {
  out.fill(0.0);
  for (int k = 1; k <= Filter::radius; ++k) {
    const double* after = at(k);
    const double* before = at(-k);
    for (int j = 0; j < block; ++j) {
      out[j] += Filter::derive[k] * (after[j] - before[j]);
    }
  }
}

double total(const Block& lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace

/// The rows of one side's ring that row y of its gradient is made of.
template <typename Filter>
struct Gradient::Window {
  std::array<const double*, ring_rows<Filter>> smooth;
  std::array<const double*, ring_rows<Filter>> derived;

  Window(const Side& side, int64_t y, int64_t height, int64_t pitch) {
    for (int k = 0; k < ring_rows<Filter>; ++k) {
      const int64_t row = Filter::inside(y + k - Filter::radius, height);
      smooth[k] = side.smooth.data() + row % ring_rows<Filter> * pitch;
      derived[k] = side.derived.data() + row % ring_rows<Filter> * pitch;
    }
  }

  void magnitude(int64_t x, Block& out) const {
    Block along_x;
    Block along_y;
    smooth_block<Filter>([&](int k) { return derived[Filter::radius + k] + x; }, along_x);
    derive_block<Filter>([&](int k) { return smooth[Filter::radius + k] + x; }, along_y);
    for (int j = 0; j < block; ++j) {
      out[j] = std::sqrt(along_x[j] * along_x[j] + along_y[j] * along_y[j]);
    }
  }
};

/// A picture and what is done to its values before the filter.
template <typename T>
struct Gradient::Source {
  const Picture<T>& picture;
  bool stretched = false;
  double lowest = 0.0;
  double range = 1.0;

  /// The values as they are.
  explicit Source(const Picture<T>& plain) : picture{plain} {}

  /// Values mapped so that the picture's minimum becomes 0 and its maximum 1; all 0 for a flat
  /// picture.
  static Source stretch(const Picture<T>& picture) {
    Source source{picture};
    T low = picture.row(0)[0];
    T high = low;
    for (int64_t y = 0; y < picture.height; ++y) {
      const auto [least, most] =
          std::minmax_element(picture.row(y), picture.row(y) + picture.width);
      low = std::min(low, *least);
      high = std::max(high, *most);
    }
    source.stretched = true;
    source.lowest = static_cast<double>(low);
    source.range = static_cast<double>(high) - static_cast<double>(low);
    return source;
  }

  void copy_row(int64_t y, double* out) const {
    const T* row = picture.row(y);
    if (!stretched) {
      std::copy_n(row, picture.width, out);
    } else if (range > 0.0) {
      std::transform(row, row + picture.width, out,
                     [this](T value) { return (static_cast<double>(value) - lowest) / range; });
    } else {
      std::fill_n(out, picture.width, 0.0);
    }
  }
};

template <typename Filter, typename T>
void Gradient::filter_row(const Source<T>& source, int64_t y, Side& side) const {
  const int64_t width = source.picture.width;
  constexpr int radius = Filter::radius;
  double* values = side.padded.data() + radius;
  source.copy_row(y, values);
  for (int64_t k = 1; k <= radius; ++k) {
    values[-k] = values[Filter::inside(-k, width)];
  }
  for (int64_t x = width; x < width + radius; ++x) {
    values[x] = values[Filter::inside(x, width)];
  }
  const int64_t slot = y % ring_rows<Filter> * pitch_;
  double* smooth = side.smooth.data() + slot;
  double* derived = side.derived.data() + slot;
  for (int64_t x = 0; x < pitch_; x += block) {
    const auto at = [&](int k) { return values + x + k; };
    Block smoothed;
    Block slopes;
    smooth_block<Filter>(at, smoothed);
    derive_block<Filter>(at, slopes);
    std::memcpy(smooth + x, smoothed.data(), sizeof(Block));
    std::memcpy(derived + x, slopes.data(), sizeof(Block));
  }
  // Beyond the picture both sides have gradient 0.
  std::fill(smooth + width, smooth + pitch_, 0.0);
  std::fill(derived + width, derived + pitch_, 0.0);
}

template <typename Filter, typename T>
GradientSums Gradient::sweep(const Source<T>& prediction, const Source<T>& truth,
                             const std::optional<Picture8>& trimap) {
  constexpr int64_t radius = Filter::radius;
  const int64_t width = prediction.picture.width;
  const int64_t height = prediction.picture.height;
  pitch_ = (width + block - 1) / block * block;
  for (Side* side : {&prediction_, &truth_}) {
    side->padded.assign(static_cast<size_t>(pitch_ + 2 * radius), 0.0);
    side->smooth.resize(static_cast<size_t>(pitch_ * ring_rows<Filter>));
    side->derived.resize(static_cast<size_t>(pitch_ * ring_rows<Filter>));
  }
  weights_.assign(static_cast<size_t>(pitch_), 0.0);

  GradientSums sums;
  int64_t ready = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (; ready < std::min(height, y + radius + 1); ++ready) {
      filter_row<Filter>(prediction, ready, prediction_);
      filter_row<Filter>(truth, ready, truth_);
    }
    const Window<Filter> predicted{prediction_, y, height, pitch_};
    const Window<Filter> actual{truth_, y, height, pitch_};
    if (trimap) {
      std::transform(trimap->row(y), trimap->row(y) + width, weights_.begin(),
                     [](uint8_t value) { return is_unknown(value) ? 1.0 : 0.0; });
    }
    Block all{};
    Block inside{};
    for (int64_t x = 0; x < pitch_; x += block) {
      Block p;
      Block t;
      predicted.magnitude(x, p);
      actual.magnitude(x, t);
      for (int j = 0; j < block; ++j) {
        const double error = (p[j] - t[j]) * (p[j] - t[j]);
        all[j] += error;
        inside[j] += error * weights_[x + j];
      }
    }
    sums.all += total(all);
    sums.unknown += total(inside);
  }
  return sums;
}

template <typename T>
GradientSums Gradient::sums(const Picture<T>& prediction, const Picture<T>& truth,
                            const std::optional<Picture8>& trimap, MattingProfile profile) {
  if (profile == MattingProfile::matlab) {
    return sweep<UnitFilter>(Source<T>::stretch(prediction), Source<T>::stretch(truth), trimap);
  }
  auto sums = profile == MattingProfile::p3m
                  ? sweep<GaussianFilter>(Source<T>{prediction}, Source<T>{truth}, trimap)
                  : sweep<UnitFilter>(Source<T>{prediction}, Source<T>{truth}, trimap);
  constexpr double full = full_scale<T>();
  constexpr double scale = full * full;
  return {sums.unknown / scale, sums.all / scale};
}

template GradientSums Gradient::sums(const Picture8&, const Picture8&,
                                     const std::optional<Picture8>&, MattingProfile);
template GradientSums Gradient::sums(const Picture16&, const Picture16&,
                                     const std::optional<Picture8>&, MattingProfile);
template GradientSums Gradient::sums(const PictureF&, const PictureF&,
                                     const std::optional<Picture8>&, MattingProfile);
template GradientSums Gradient::sums(const PictureD&, const PictureD&,
                                     const std::optional<Picture8>&, MattingProfile);

}  // namespace muster
