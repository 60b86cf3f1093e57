#include "icons.h"

#include <muster/base/check.h>
#include <muster/base/random.h>
#include <muster/io/tensor_image.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <utility>

namespace matting {

namespace fs = std::filesystem;

namespace {

constexpr std::array photographs{"astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg"};

std::vector<fs::path> icons_by_name(const fs::path& folder) {
  std::vector<fs::path> found;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator{folder}) {
      if (entry.path().extension() == ".png") {
        found.push_back(entry.path());
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& left, const auto& right) {
    return std::pair{left.stem(), left} < std::pair{right.stem(), right};
  });
  muster::check(found.size() >= 6, muster::ErrorKind::data,
                "{} holds {} PNG icons and at least 6 are needed; install adwaita-icon-theme or "
                "give --data.icons",
                folder.string(), found.size());
  return found;
}

/// Every sixth name is for validation, the one after it for tests.
Split split_of(size_t place) {
  return place % 6 == 1 ? Split::val : place % 6 == 2 ? Split::test : Split::train;
}

/// Set where a pixel at most `band` rows and columns away is set in `region` (HxW, bool).
at::Tensor grown(const at::Tensor& region, int64_t band) {
  auto result = at::constant_pad_nd(region, {band, band, band, band});
  const int64_t reach = 2 * band + 1;
  for (const int64_t dim : {0, 1}) {
    // Each round joins two overlapping spans, so that few rounds cover the whole reach.
    for (int64_t span = 1; span < reach;) {
      const int64_t shift = std::min(span, reach - span);
      const auto rest = result.size(dim) - shift;
      result = result.slice(dim, 0, rest).logical_or(result.slice(dim, shift, shift + rest));
      span += shift;
    }
  }
  return result;
}

class Icons final : public muster::Dataset<Photo> {
 public:
  Icons(const IconOptions& options, Split split)
      : band_{options.band},
        icons_{icon_paths(options, split)},
        photographs_{photograph_paths(options)} {}

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(icons_.size()); }

  [[nodiscard]] Photo get(int64_t index, muster::Rng& /*rng*/) const override {
    const fs::path& icon_path = icons_.at(static_cast<size_t>(index));
    const fs::path& photo_path = photographs_[static_cast<size_t>(index) % photographs_.size()];
    const auto icon = muster::read_image(icon_path, {.mode = muster::ImageMode::rgba});
    const auto photo = muster::read_image(photo_path, {.mode = muster::ImageMode::rgb});

    // The crop depends on the sample alone, so that the data set is the same whatever the seed.
    muster::Rng rng{0x69636f6e, static_cast<uint64_t>(index)};
    const int64_t height = side(std::min(icon.size(1), photo.size(1)), rng);
    const int64_t width = side(std::min(icon.size(2), photo.size(2)), rng);
    const auto front = crop(icon, height, width, rng);
    const auto back = crop(photo, height, width, rng).to(at::kFloat);

    Photo sample;
    sample.dataset_name = photo_path.stem().string();
    sample.image_name = icon_path.stem().string();
    sample.alpha = front[3].contiguous();
    const auto alpha = sample.alpha.to(at::kFloat) / 255;
    const auto colour = front.slice(0, 0, 3).to(at::kFloat);
    // Rounded to whole levels, as a camera would give them.
    sample.image = (colour * alpha + back * (1 - alpha)).round() / 255;
    sample.trimap = trimap_of(sample.alpha, band_);
    return sample;
  }

 private:
  static int64_t side(int64_t limit, muster::Rng& rng) {
    return limit - rng.below(std::max<int64_t>(1, limit / 4));
  }

  static at::Tensor crop(const at::Tensor& image, int64_t height, int64_t width, muster::Rng& rng) {
    const int64_t top = rng.below(image.size(1) - height + 1);
    const int64_t left = rng.below(image.size(2) - width + 1);
    return image.slice(1, top, top + height).slice(2, left, left + width);
  }

  int64_t band_;
  std::vector<fs::path> icons_;
  std::vector<fs::path> photographs_;
};

}  // namespace

at::Tensor trimap_of(const at::Tensor& alpha, int64_t band) {
  const auto near_other = [&alpha, band](int64_t level) { return grown(alpha != level, band); };
  const auto unknown = at::full_like(alpha, 128);
  const auto known_front = at::where(near_other(255), unknown, at::full_like(alpha, 255));
  return at::where(near_other(0), known_front, at::full_like(alpha, 0));
}

std::vector<fs::path> icon_paths(const IconOptions& options, Split split) {
  std::vector<fs::path> mine;
  const auto all = icons_by_name(options.icons);
  for (size_t place = 0; place < all.size(); ++place) {
    if (split_of(place) == split) {
      mine.push_back(all[place]);
    }
  }
  return mine;
}

std::vector<fs::path> photograph_paths(const IconOptions& options) {
  std::vector<fs::path> paths;
  for (const auto* name : photographs) {
    paths.push_back(options.photographs / name);
    muster::check(
        fs::is_regular_file(paths.back()), muster::ErrorKind::data,
        "{} holds no {}; `make build` puts the photographs there, or give --data.photographs",
        options.photographs.string(), name);
  }
  return paths;
}

std::shared_ptr<const muster::Dataset<Photo>> icons_on_photographs(const IconOptions& options,
                                                                   Split split) {
  return std::make_shared<Icons>(options, split);
}

}  // namespace matting
