#include <libdeflate.h>
#include <muster/base/check.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/io/codecs_internal.h"
#include "src/io/png_chunks_internal.h"
#include "src/io/png_internal.h"

namespace muster {
namespace {

/// Part of an image whose rows stand together in the file: every step-th pixel from x, y on.
struct Pass {
  int64_t x, y, step_x, step_y;

  [[nodiscard]] int64_t columns(const PngChunks& png) const {
    return (png.width - x + step_x - 1) / step_x;
  }
  [[nodiscard]] int64_t rows(const PngChunks& png) const {
    return (png.height - y + step_y - 1) / step_y;
  }
};

std::vector<Pass> passes(const PngChunks& png) {
  std::vector<Pass> all{{0, 0, 1, 1}};
  if (png.interlaced) {
    all = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    std::erase_if(all, [&](const Pass& pass) {
      return pass.x >= png.width || pass.y >= png.height;  // a pass without pixels has no rows
    });
  }
  return all;
}

/// Bytes of a row of so many pixels, without the byte for its filter.
size_t packed_row_bytes(const PngChunks& png, int64_t columns) {
  return static_cast<size_t>((columns * png.samples_a_pixel() * png.depth + 7) / 8);
}

size_t packed_bytes(const PngChunks& png) {
  size_t total = 0;
  for (const auto& pass : passes(png)) {
    total += (packed_row_bytes(png, pass.columns(png)) + 1) * static_cast<size_t>(pass.rows(png));
  }
  return total;
}

/// Undoes the deflation into `to`, which has room for exactly what the header asks for.
void inflate(const PngChunks& png, std::string_view name, uint8_t* to, size_t bytes) {
  std::string joined;
  std::string_view data = png.data.front();
  if (png.data.size() > 1) {
    size_t compressed = 0;
    for (const auto part : png.data) {
      compressed += part.size();
    }
    joined.reserve(compressed);  // growing would hold it twice
    for (const auto part : png.data) {
      joined += part;
    }
    data = joined;
  }
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> engine{
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor};
  check(engine != nullptr, ErrorKind::user, "No memory for a PNG decompressor");
  size_t found = 0;
  const auto result = libdeflate_zlib_decompress_ex(engine.get(), data.data(), data.size(), to,
                                                    bytes, nullptr, &found);
  check(result != LIBDEFLATE_BAD_DATA, ErrorKind::data,
        "{}: the PNG is damaged: its compressed pixels cannot be read", name);
  check(result == LIBDEFLATE_SUCCESS && found == bytes, ErrorKind::data,
        "{}: the PNG is damaged: it holds {} pixels than the {} x {} of its header", name,
        result == LIBDEFLATE_SUCCESS ? "fewer" : "more", png.width, png.height);
}

/// A file cannot hold more than deflate's best ratio allows; said before memory is taken for the
/// pixels.
void check_claim(const PngChunks& png, std::string_view name, size_t bytes) {
  constexpr size_t best_ratio = 1032;
  size_t compressed = 0;
  for (const auto part : png.data) {
    compressed += part.size();
  }
  check(
      bytes / best_ratio <= compressed, ErrorKind::data,
      "{}: the PNG is cut short: {} compressed bytes cannot hold the {} x {} pixels of its header",
      name, compressed, png.width, png.height);
}

void swap_bytes_of_16(uint8_t* values, size_t bytes) {
  if constexpr (std::endian::native == std::endian::little) {
    for (size_t i = 0; i + 1 < bytes; i += 2) {
      std::swap(values[i], values[i + 1]);
    }
  }
}

/// Turns unfiltered rows into pixels of 8 or 16 bits: spreads small samples, looks up the palette,
/// adds the alpha that a transparent colour or palette gives.
class RowExpander {
 public:
  RowExpander(const PngChunks& png, std::string_view name)
      : png_{png}, name_{name}, samples_{png.samples_a_pixel()} {
    if (png.colour == 3) {
      return;
    }
    keyed_ = !png.transparency.empty();
    for (size_t i = 0; i < png.transparency.size() / 2; ++i) {
      const auto high = static_cast<uint8_t>(png.transparency[2 * i]);
      const auto low = static_cast<uint8_t>(png.transparency[2 * i + 1]);
      const auto value = static_cast<unsigned>(high << 8U | low);
      key_[i] = static_cast<uint16_t>(value & ((1U << static_cast<unsigned>(png.depth)) - 1));
    }
  }

  /// True when a row is its pixels already, but for the order of two bytes.
  [[nodiscard]] bool trivial() const { return png_.colour != 3 && png_.depth >= 8 && !keyed_; }

  void expand(const uint8_t* row, int64_t columns, uint8_t* to) const {
    if (png_.colour == 3) {
      expand_palette(row, columns, to);
    } else if (trivial()) {
      const size_t bytes = packed_row_bytes(png_, columns);
      std::memcpy(to, row, bytes);
      if (png_.depth == 16) {
        swap_bytes_of_16(to, bytes);
      }
    } else if (png_.depth == 16) {
      expand_keyed(
          columns, to,
          [&](int64_t i) -> uint16_t {
            return static_cast<uint16_t>(row[2 * i] << 8U | row[2 * i + 1]);
          },
          uint16_t{0xffff}, 1);
    } else {
      const auto full = static_cast<unsigned>((1U << static_cast<unsigned>(png_.depth)) - 1);
      expand_keyed(
          columns, to, [&](int64_t i) -> uint8_t { return sample(row, i); }, uint8_t{0xff},
          255 / full);
    }
  }

 private:
  /// Sample i of a row of at most 8 bits a sample; the leftmost is in the highest bits.
  [[nodiscard]] uint8_t sample(const uint8_t* row, int64_t i) const {
    const int64_t bit = i * png_.depth;
    const auto shift = static_cast<unsigned>(8 - png_.depth - bit % 8);
    return static_cast<uint8_t>((row[bit / 8] >> shift) &
                                ((1U << static_cast<unsigned>(png_.depth)) - 1));
  }

  template <typename Number, typename Read>
  void expand_keyed(int64_t columns, uint8_t* to, Read read, Number opaque, unsigned scale) const {
    for (int64_t x = 0; x < columns; ++x) {
      bool is_key = keyed_;
      for (int64_t k = 0; k < samples_; ++k) {
        const Number value = read(x * samples_ + k);
        is_key = is_key && value == key_[static_cast<size_t>(k)];
        to = put(to, static_cast<Number>(value * scale));
      }
      if (keyed_) {
        to = put(to, is_key ? Number{0} : opaque);
      }
    }
  }

  template <typename Number>
  static uint8_t* put(uint8_t* to, Number value) {
    std::memcpy(to, &value, sizeof value);
    return to + sizeof value;
  }

  void expand_palette(const uint8_t* row, int64_t columns, uint8_t* to) const {
    const size_t colours = png_.palette.size() / 3;
    const bool has_alpha = !png_.transparency.empty();
    for (int64_t x = 0; x < columns; ++x) {
      const size_t index = sample(row, x);
      check(index < colours, ErrorKind::data,
            "{}: the PNG is damaged: a pixel has colour {} of a palette of {}", name_, index,
            colours);
      std::memcpy(to, png_.palette.data() + 3 * index, 3);
      to += 3;
      if (has_alpha) {
        *to++ = index < png_.transparency.size() ? static_cast<uint8_t>(png_.transparency[index])
                                                 : uint8_t{255};
      }
    }
  }

  const PngChunks& png_;
  std::string_view name_;
  int64_t samples_;
  bool keyed_ = false;
  std::array<uint16_t, 3> key_{};
};

/// Calls `take(y, row)` for each row of the pass once it is unfiltered, from the top; the row above
/// may be overwritten by then. Returns where the next pass begins.
template <typename Take>
uint8_t* unfilter_pass(const PngChunks& png, std::string_view name, const Pass& pass, uint8_t* at,
                       Take take) {
  const size_t bytes = packed_row_bytes(png, pass.columns(png));
  const size_t pixel_bytes = packed_row_bytes(png, 1);
  const std::vector<uint8_t> zeros(bytes + unfilter_margin);
  const uint8_t* above = zeros.data();
  const int64_t rows = pass.rows(png);
  for (int64_t y = 0; y < rows; ++y) {
    uint8_t* row = at + 1;
    check(png_unfilter(*at, row, above, bytes, pixel_bytes), ErrorKind::data,
          "{}: the PNG is damaged: a row has filter {}", name, int{*at});
    if (y > 0) {
      take(y - 1, above);
    }
    above = row;
    at = row + bytes;
  }
  take(rows - 1, above);
  return at;
}

/// Rows that are pixels already move together where they are, so that the image takes no second
/// memory.
Image close_up(const PngChunks& png, std::string_view name, std::unique_ptr<uint8_t[]> raw) {
  const auto info = png.info();
  const size_t bytes = packed_row_bytes(png, png.width);
  unfilter_pass(png, name, passes(png).front(), raw.get(), [&](int64_t y, const uint8_t* row) {
    uint8_t* to = raw.get() + static_cast<size_t>(y) * bytes;
    std::memmove(to, row, bytes);
    if (info.depth == 16) {
      swap_bytes_of_16(to, bytes);
    }
  });
  return {info.width, info.height, info.channels, info.depth, std::move(raw)};
}

Image expand_passes(const PngChunks& png, std::string_view name, const RowExpander& expander,
                    uint8_t* raw) {
  const auto info = png.info();
  Image image = Image::uninitialised(info.width, info.height, info.channels, info.depth);
  const auto pixel_bytes = static_cast<size_t>(info.channels * info.depth / 8);
  const auto row_bytes = static_cast<size_t>(image.row_bytes());
  std::vector<uint8_t> scratch(png.interlaced ? row_bytes : 0);
  for (const auto& pass : passes(png)) {
    const int64_t columns = pass.columns(png);
    raw = unfilter_pass(png, name, pass, raw, [&](int64_t y, const uint8_t* row) {
      uint8_t* to = image.pixels.get() + static_cast<size_t>(pass.y + y * pass.step_y) * row_bytes;
      if (!png.interlaced) {
        expander.expand(row, columns, to);
        return;
      }
      expander.expand(row, columns, scratch.data());
      for (int64_t x = 0; x < columns; ++x) {
        const auto column = static_cast<size_t>(pass.x + x * pass.step_x);
        std::memcpy(to + column * pixel_bytes,
                    scratch.data() + static_cast<size_t>(x) * pixel_bytes, pixel_bytes);
      }
    });
  }
  return image;
}

}  // namespace

ImageInfo png_info(std::string_view bytes, std::string_view name) {
  return read_png_chunks(bytes, name, true).info();
}

Image decode_png(std::string_view bytes, std::string_view name, const DecodeLimits& limits) {
  check_limits(png_info(bytes, name), name, limits);
  const PngChunks png = read_png_chunks(bytes, name, false);
  const size_t size = packed_bytes(png);
  check_claim(png, name, size);
  const RowExpander expander{png, name};
  const bool in_place = expander.trivial() && !png.interlaced;
  const auto info = png.info();
  const int64_t row_bytes = info.width * info.channels * (info.depth / 8);
  check_memory(static_cast<int64_t>(size) + (in_place ? 0 : row_bytes * info.height), name, limits);
  auto raw = std::make_unique_for_overwrite<uint8_t[]>(size + unfilter_margin);
  inflate(png, name, raw.get(), size);
  if (in_place) {
    return close_up(png, name, std::move(raw));
  }
  return expand_passes(png, name, expander, raw.get());
}

}  // namespace muster
