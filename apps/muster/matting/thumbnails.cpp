#include "thumbnails.h"

#include <muster/io/png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace muster::app {

namespace {

constexpr int64_t longest_side = 320;

/// Where the boxes of a side begin, and its end: each box has a pixel at least.
std::vector<int64_t> bounds(int64_t size, int64_t boxes) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i <= boxes; ++i) {
    result.push_back(i * size / boxes);
  }
  return result;
}

using Colour = std::array<uint8_t, 3>;

/// Black, dark red, red, yellow, white: small errors, which matter in mattes, are told apart.
std::array<Colour, 256> heat_colours() {
  struct Stop {
    double at;
    std::array<double, 3> colour;
  };
  constexpr std::array<Stop, 6> stops{{{0.0, {0, 0, 0}},
                                       {0.02, {45, 8, 60}},
                                       {0.12, {150, 20, 80}},
                                       {0.35, {240, 70, 40}},
                                       {0.7, {255, 190, 50}},
                                       {1.0, {255, 255, 230}}}};
  std::array<Colour, 256> colours{};
  for (size_t i = 0; i < colours.size(); ++i) {
    const double x = static_cast<double>(i) / 255.0;
    size_t next = 1;
    while (x > stops[next].at) {
      ++next;
    }
    const Stop& low = stops[next - 1];
    const Stop& high = stops[next];
    const double part = (x - low.at) / (high.at - low.at);
    for (size_t c = 0; c < 3; ++c) {
      colours[i][c] = static_cast<uint8_t>(
          std::lround(low.colour[c] + part * (high.colour[c] - low.colour[c])));
    }
  }
  return colours;
}

struct Small {
  Image prediction;
  Image truth;
  Image error;
};

template <typename T>
const T* row_of(const Image& image, int64_t y) {
  return reinterpret_cast<const T*>(image.pixels.get()) + y * image.width;
}

template <typename T>
uint8_t to_byte(uint64_t sum, uint64_t count) {
  const uint64_t full = std::numeric_limits<T>::max() * count;
  return static_cast<uint8_t>((255 * sum + full / 2) / full);
}

/// One row of boxes at a time: sums of both mattes, and the largest difference.
template <typename T>
void shrink(const Mattes& mattes, Small& small) {
  const int64_t columns = small.truth.width;
  const auto xs = bounds(mattes.truth.width, columns);
  const auto ys = bounds(mattes.truth.height, small.truth.height);
  const auto colours = heat_colours();
  for (int64_t j = 0; j < small.truth.height; ++j) {
    for (int64_t i = 0; i < columns; ++i) {
      const auto begin = xs[static_cast<size_t>(i)];
      const auto end = xs[static_cast<size_t>(i) + 1];
      uint64_t prediction = 0;
      uint64_t truth = 0;
      uint32_t most = 0;
      for (auto y = ys[static_cast<size_t>(j)]; y < ys[static_cast<size_t>(j) + 1]; ++y) {
        const T* p = row_of<T>(mattes.prediction, y);
        const T* g = row_of<T>(mattes.truth, y);
        uint32_t row_of_p = 0;  // a box is too narrow to overflow it
        uint32_t row_of_g = 0;
        for (int64_t x = begin; x < end; ++x) {
          row_of_p += p[x];
          row_of_g += g[x];
          most = std::max(most, std::max(uint32_t{p[x]}, uint32_t{g[x]}) -
                                    std::min(uint32_t{p[x]}, uint32_t{g[x]}));
        }
        prediction += row_of_p;
        truth += row_of_g;
      }
      const auto count = static_cast<uint64_t>(
          (end - begin) * (ys[static_cast<size_t>(j) + 1] - ys[static_cast<size_t>(j)]));
      const int64_t at = j * columns + i;
      small.prediction.pixels[static_cast<size_t>(at)] = to_byte<T>(prediction, count);
      small.truth.pixels[static_cast<size_t>(at)] = to_byte<T>(truth, count);
      std::copy_n(colours[to_byte<T>(most, 1)].data(), 3, small.error.pixels.get() + 3 * at);
    }
  }
}

}  // namespace

Thumbnails make_thumbnails(const Mattes& mattes) {
  const int64_t width = mattes.truth.width;
  const int64_t height = mattes.truth.height;
  const int64_t longest = std::max(width, height);
  const auto side = [&](int64_t size) {
    return longest <= longest_side ? size : std::max<int64_t>(1, size * longest_side / longest);
  };
  Small small{.prediction = Image::uninitialised(side(width), side(height), 1, 8),
              .truth = Image::uninitialised(side(width), side(height), 1, 8),
              .error = Image::uninitialised(side(width), side(height), 3, 8)};
  if (mattes.truth.depth == 16) {
    shrink<uint16_t>(mattes, small);
  } else {
    shrink<uint8_t>(mattes, small);
  }
  const PngOptions options{.level = 6};
  return {.prediction = encode_png(small.prediction.view(), options),
          .truth = encode_png(small.truth.view(), options),
          .error = encode_png(small.error.view(), options)};
}

bool WorstThumbnails::wants(double badness, int64_t index) {
  const std::lock_guard lock{mutex_};
  return worst_.size() < most_ || (most_ > 0 && Place{-badness, index} < worst_.rbegin()->first);
}

void WorstThumbnails::put(double badness, int64_t index, Thumbnails thumbnails) {
  const std::lock_guard lock{mutex_};
  worst_.emplace(Place{-badness, index}, std::move(thumbnails));
  while (worst_.size() > most_) {
    worst_.erase(std::prev(worst_.end()));
  }
}

std::map<int64_t, Thumbnails> WorstThumbnails::take() {
  const std::lock_guard lock{mutex_};
  std::map<int64_t, Thumbnails> by_index;
  for (auto& [place, thumbnails] : worst_) {
    by_index.emplace(place.second, std::move(thumbnails));
  }
  worst_.clear();
  return by_index;
}

}  // namespace muster::app
