#include "crops.h"

#include <muster/base/check.h>
#include <muster/base/random.h>
#include <muster/io/tensor_image.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace matting {

namespace {

/// A picture that is decoded at its first use, by whichever thread comes first.
class LazyPicture {
 public:
  LazyPicture(std::filesystem::path path, muster::ImageMode mode, int64_t band)
      : path_{std::move(path)}, mode_{mode}, band_{band} {}

  [[nodiscard]] std::string name() const { return path_.stem().string(); }
  [[nodiscard]] const at::Tensor& pixels() const { return decoded().pixels_; }
  /// Nx2, rows and columns: where an icon's trimap is unknown.
  [[nodiscard]] const at::Tensor& unknown() const { return decoded().unknown_; }

 private:
  const LazyPicture& decoded() const {
    std::call_once(once_, [this] {
      pixels_ = muster::read_image(path_, {.mode = mode_});
      if (mode_ == muster::ImageMode::rgba) {
        unknown_ = at::nonzero(trimap_of(pixels_[3], band_) == 128);
        muster::check(unknown_.size(0) > 0, muster::ErrorKind::data,
                      "{}: its trimap has no unknown pixel, so there is nothing to learn from it; "
                      "take it out of the folder of icons",
                      path_.string());
      }
    });
    return *this;
  }

  std::filesystem::path path_;
  muster::ImageMode mode_;
  int64_t band_;
  mutable std::once_flag once_;
  mutable at::Tensor pixels_;
  mutable at::Tensor unknown_;
};

/// A factor between 1 / most and most, as often above as below one.
double factor(double most, muster::Rng& rng) {
  const double range = std::log(most);
  return std::exp(rng.uniform(-range, range));
}

/// Rows top to top + side and columns likewise of CxHxW; zero where the picture has ended.
at::Tensor square(const at::Tensor& picture, int64_t top, int64_t left, int64_t side) {
  const int64_t bottom = top + side - picture.size(1);
  const int64_t right = left + side - picture.size(2);
  return at::constant_pad_nd(picture, {-left, right, -top, bottom});
}

at::Tensor resized(const at::Tensor& picture, int64_t side) {
  return at::upsample_bilinear2d(picture.unsqueeze(0), {side, side}, false).squeeze(0);
}

/// Each channel of a picture in [0, 255] times a factor of its own, the channels in a new order.
/// Black stays black, as shadows are.
at::Tensor recoloured(const at::Tensor& colours, double jitter, muster::Rng& rng) {
  std::array<int64_t, 3> order{0, 1, 2};
  rng.shuffle(order);
  std::vector<at::Tensor> channels;
  channels.reserve(order.size());
  for (const int64_t channel : order) {
    channels.push_back(colours[channel] * (1 + rng.uniform(-jitter, jitter)));
  }
  return at::stack(channels).clamp(0, 255);
}

class Crops final : public muster::Dataset<Photo> {
 public:
  Crops(const IconOptions& icons, const CropOptions& options)
      : options_{options}, band_{icons.band} {
    muster::check(
        options.size >= 1 && options.repeats >= 1 && options.zoom >= 1 && options.jitter >= 0 &&
            options.jitter < 1,
        "crops: expected size and repeats of at least 1, zoom of at least 1 and jitter in "
        "[0, 1), found {}, {}, {} and {}",
        options.size, options.repeats, options.zoom, options.jitter);
    for (const auto& path : icon_paths(icons, Split::train)) {
      icons_.push_back(std::make_unique<LazyPicture>(path, muster::ImageMode::rgba, band_));
    }
    for (const auto& path : photograph_paths(icons)) {
      photographs_.push_back(std::make_unique<LazyPicture>(path, muster::ImageMode::rgb, band_));
    }
  }

  [[nodiscard]] int64_t size() const override {
    return static_cast<int64_t>(icons_.size()) * options_.repeats;
  }

  [[nodiscard]] Photo get(int64_t index, muster::Rng& rng) const override {
    const auto& icon = *icons_[static_cast<size_t>(index) % icons_.size()];
    const auto& photograph =
        *photographs_[static_cast<size_t>(rng.below(static_cast<int64_t>(photographs_.size())))];
    Photo sample;
    sample.dataset_name = photograph.name();
    sample.image_name = icon.name();

    // Wider than the crop by the band, so that the trimap knows what lies just outside.
    const auto front = foreground(icon, rng);
    const auto alpha = front[3].round();
    const auto inside = [this](const at::Tensor& wide) {
      return wide.slice(-2, band_, band_ + options_.size)
          .slice(-1, band_, band_ + options_.size)
          .contiguous();
    };
    const auto wide_alpha = alpha.to(at::kByte);
    sample.trimap = inside(trimap_of(wide_alpha, band_));
    sample.alpha = inside(wide_alpha);
    const auto image =
        inside(front.slice(0, 0, 3)) + background(photograph, rng) * (1 - inside(alpha) / 255);
    sample.image = image.round() / 255;
    return sample;
  }

 private:
  /// Colours times opacity, and the opacity in [0, 255]: 4 channels of a crop and its margin.
  [[nodiscard]] at::Tensor foreground(const LazyPicture& icon, muster::Rng& rng) const {
    const int64_t wide = options_.size + 2 * band_;
    const auto side = std::lround(static_cast<double>(wide) * factor(options_.zoom, rng));
    const auto centre = icon.unknown()[rng.below(icon.unknown().size(0))];
    auto cut = square(icon.pixels(), centre[0].item<int64_t>() - side / 2,
                      centre[1].item<int64_t>() - side / 2, side)
                   .to(at::kFloat);
    if (rng.below(2) == 1) {
      cut = cut.flip({2});
    }
    const auto alpha = cut.slice(0, 3, 4);
    const auto colours = recoloured(cut.slice(0, 0, 3), options_.jitter, rng) * (alpha / 255);
    return resized(at::cat({colours, alpha}), wide);
  }

  [[nodiscard]] at::Tensor background(const LazyPicture& photograph, muster::Rng& rng) const {
    const at::Tensor& pixels = photograph.pixels();
    const int64_t most = std::min(pixels.size(1), pixels.size(2));
    const auto wanted =
        std::lround(static_cast<double>(options_.size) * factor(options_.zoom, rng));
    const int64_t side = std::clamp<int64_t>(wanted, 1, most);
    const int64_t top = rng.below(pixels.size(1) - side + 1);
    const int64_t left = rng.below(pixels.size(2) - side + 1);
    auto cut = square(pixels, top, left, side).to(at::kFloat);
    if (rng.below(2) == 1) {
      cut = cut.flip({2});
    }
    return resized(recoloured(cut, options_.jitter, rng), options_.size);
  }

  CropOptions options_;
  int64_t band_;
  std::vector<std::unique_ptr<const LazyPicture>> icons_;
  std::vector<std::unique_ptr<const LazyPicture>> photographs_;
};

}  // namespace

std::shared_ptr<const muster::Dataset<Photo>> training_crops(const IconOptions& icons,
                                                             const CropOptions& options) {
  return std::make_shared<Crops>(icons, options);
}

}  // namespace matting
