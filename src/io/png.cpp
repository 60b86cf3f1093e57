#include <libdeflate.h>
#include <muster/base/check.h>
#include <muster/io/png.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "src/io/png_internal.h"

namespace muster {
namespace {

using WideLanes [[gnu::vector_size(16)]] = uint16_t;

/// Of left, above and corner, the one nearest to left + above - corner (PNG, 9.4), in bytes alone:
/// where above and left lie on the same side of the corner, that distance is the sum of the other
/// two and never the smallest, so that its overflow does not matter.
Lanes paeth(Lanes left, Lanes above, Lanes corner) {
  const auto above_is_less = above < corner;
  const auto left_is_less = left < corner;
  const Lanes from_left = above_is_less ? corner - above : above - corner;
  const Lanes from_above = left_is_less ? corner - left : left - corner;
  const Lanes apart = from_left > from_above ? from_left - from_above : from_above - from_left;
  const Lanes from_corner = (above_is_less == left_is_less) ? ~Lanes{} : apart;
  const Lanes other = from_above <= from_corner ? above : corner;
  return ((from_left <= from_above) & (from_left <= from_corner)) ? left : other;
}

/// The sum of the bytes' distances from 0, modulo 256: what a deflater has to say about them,
/// roughly.
uint64_t magnitude(const uint8_t* bytes, size_t count) {
  constexpr size_t block = 128 * lanes;  // 128 sums of two bytes fit in 16 bits
  uint64_t total = 0;
  for (size_t begin = 0; begin < count; begin += block) {
    WideLanes sums{};
    for (size_t i = begin; i < std::min(count, begin + block); i += lanes) {
      const Lanes value = load_lanes(bytes + i);
      const Lanes negated = -value;
      const auto pairs = reinterpret_cast<WideLanes>(value < negated ? value : negated);
      sums += (pairs & 0xff) + (pairs >> 8);
    }
    for (size_t i = 0; i < sizeof(WideLanes) / sizeof(uint16_t); ++i) {
      total += sums[i];
    }
  }
  return total;
}

/// Filters rows, each with the one of Sub, Up and Paeth whose result is smallest. Rows are kept
/// with zeros before them (the pixel left of the first is 0) and room behind, so that whole vectors
/// can be worked on.
class RowFilter {
 public:
  RowFilter(size_t row_bytes, size_t pixel_bytes)
      : row_bytes_{row_bytes}, pixel_bytes_{pixel_bytes}, above_(row_bytes + 2 * lanes) {
    row_ = above_;
    for (auto& result : results_) {
      result.resize(row_bytes + lanes);
    }
  }

  /// Where the caller puts the next row.
  uint8_t* row() { return row_.data() + lanes; }

  /// Writes the filter's number and the filtered row.
  void write(uint8_t* to) {
    const uint8_t* row = row_.data() + lanes;
    const uint8_t* above = above_.data() + lanes;
    for (size_t i = 0; i < row_bytes_; i += lanes) {
      const Lanes here = load_lanes(row + i);
      const Lanes left = load_lanes(row + i - pixel_bytes_);
      const Lanes up = load_lanes(above + i);
      const Lanes corner = load_lanes(above + i - pixel_bytes_);
      store_lanes(results_[0].data() + i, here - left);
      store_lanes(results_[1].data() + i, here - up);
      store_lanes(results_[2].data() + i, here - paeth(left, up, corner));
    }
    constexpr std::array<uint8_t, 3> numbers{1, 2, 4};
    size_t best = 0;
    uint64_t smallest = ~uint64_t{0};
    for (size_t k = 0; k < results_.size(); ++k) {
      std::memset(results_[k].data() + row_bytes_, 0, lanes);
      if (const auto size = magnitude(results_[k].data(), row_bytes_); size < smallest) {
        smallest = size;
        best = k;
      }
    }
    *to = numbers[best];
    std::memcpy(to + 1, results_[best].data(), row_bytes_);
    row_.swap(above_);
  }

 private:
  size_t row_bytes_;
  size_t pixel_bytes_;
  std::vector<uint8_t> above_;
  std::vector<uint8_t> row_;
  std::array<std::vector<uint8_t>, 3> results_;
};

/// The image's row as PNG stores it: 16-bit values with the high byte first.
void copy_row(const ImageView& image, int64_t y, uint8_t* to) {
  const auto values = static_cast<size_t>(image.values_a_row());
  if (image.depth == 8) {
    std::memcpy(to, image.row(y), values);
    return;
  }
  const uint16_t* from = image.row16(y);
  for (size_t i = 0; i < values; ++i) {
    to[2 * i] = static_cast<uint8_t>(from[i] >> 8U);
    to[2 * i + 1] = static_cast<uint8_t>(from[i]);
  }
}

std::string header(const ImageView& image) {
  constexpr std::array<char, 5> colour_types{0, 0, 4, 2, 6};
  std::string text;
  put_be32(text, static_cast<uint32_t>(image.width));
  put_be32(text, static_cast<uint32_t>(image.height));
  text += static_cast<char>(image.depth);
  text += colour_types[static_cast<size_t>(image.channels)];
  text.append(3, '\0');  // deflate, the five filters, not interlaced
  return text;
}

void put_chunk(std::string& file, std::string_view kind, std::string_view body) {
  put_be32(file, static_cast<uint32_t>(body.size()));
  const auto begin = file.size();
  file.append(kind).append(body);
  put_be32(file, libdeflate_crc32(0, file.data() + begin, file.size() - begin));
}

void check_image(const ImageView& image, const PngOptions& options) {
  constexpr int64_t longest = (int64_t{1} << 31) - 1;
  check(image.width >= 1 && image.height >= 1 && image.width <= longest && image.height <= longest,
        "A PNG of {} x {} pixels cannot be written: each side must be 1 to {}", image.width,
        image.height, longest);
  check(image.channels >= 1 && image.channels <= 4 && (image.depth == 8 || image.depth == 16),
        "A PNG of {} channels of {} bits cannot be written: 1 to 4 channels of 8 or 16 bits can",
        image.channels, image.depth);
  check(options.level >= 0 && options.level <= 12, "PNG level {} is not between 0 and 12",
        options.level);
}

}  // namespace

std::string encode_png(const ImageView& image, const PngOptions& options) {
  check_image(image, options);
  const auto pixel_bytes = static_cast<size_t>(image.channels * image.depth / 8);
  const auto row_bytes = static_cast<size_t>(image.width) * pixel_bytes;
  const auto rows = static_cast<size_t>(image.height);
  constexpr size_t largest = size_t{1} << 30U;  // one chunk holds less than 2^31
  check(row_bytes < largest / rows, "An image of {} x {} pixels is too large: it has over 1 GiB",
        image.width, image.height);
  const size_t raw_bytes = rows * (row_bytes + 1);
  const auto raw = std::make_unique_for_overwrite<uint8_t[]>(raw_bytes);
  RowFilter filter{row_bytes, pixel_bytes};
  for (size_t y = 0; y < rows; ++y) {
    copy_row(image, static_cast<int64_t>(y), filter.row());
    filter.write(raw.get() + y * (row_bytes + 1));
  }

  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor{
      libdeflate_alloc_compressor(options.level), &libdeflate_free_compressor};
  check(compressor != nullptr, ErrorKind::user, "No memory for a PNG compressor");
  const size_t bound = libdeflate_zlib_compress_bound(compressor.get(), raw_bytes);
  const auto packed = std::make_unique_for_overwrite<char[]>(bound);
  const size_t packed_bytes =
      libdeflate_zlib_compress(compressor.get(), raw.get(), raw_bytes, packed.get(), bound);

  std::string file{png_signature};
  file.reserve(packed_bytes + 64);
  put_chunk(file, "IHDR", header(image));
  put_chunk(file, "IDAT", {packed.get(), packed_bytes});
  put_chunk(file, "IEND", {});
  return file;
}

}  // namespace muster
