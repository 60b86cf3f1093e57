#include <gtest/gtest.h>
#include <libdeflate.h>
#include <muster/base/error.h>
#include <muster/base/format.h>
#include <muster/base/random.h>
#include <muster/io/png.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <vector>

#include "src/io/png_internal.h"
#include "tests/io/picture_support.h"

namespace muster {
namespace {

struct Kind {
  int colour;
  int depth;
};
constexpr Kind every_kind[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};

void expect_decoded(const test::RawPng& raw) {
  SCOPED_TRACE(format("colour {} depth {} {}x{} interlaced {} filter {} transparent {}", raw.colour,
                      raw.depth, raw.width, raw.height, raw.interlaced, raw.filter,
                      raw.transparent.size()));
  const auto file = test::write_by_libpng(raw);
  const auto image = decode_image(file, "a.png");
  const auto info = read_image_info(file, "a.png");
  EXPECT_EQ(image.width, raw.width);
  EXPECT_EQ(image.height, raw.height);
  EXPECT_EQ(image.depth, raw.depth == 16 ? 16 : 8);
  EXPECT_EQ(std::tie(info.width, info.height, info.channels, info.depth),
            std::tie(image.width, image.height, image.channels, image.depth));
  EXPECT_EQ(test::values_of(image), test::expected_values(raw));
}

std::string chunk(std::string_view kind, std::string_view body) {
  std::string text;
  put_be32(text, static_cast<uint32_t>(body.size()));
  text.append(kind).append(body);
  put_be32(text, libdeflate_crc32(0, text.data() + 4, text.size() - 4));
  return text;
}

std::string header(uint32_t width, uint32_t height, char depth, char colour) {
  std::string body;
  put_be32(body, width);
  put_be32(body, height);
  body += depth;
  body += colour;
  body.append(3, '\0');
  return std::string{png_signature} + chunk("IHDR", body);
}

/// A tiny gray PNG whose uncompressed rows are `rows`.
std::string png_of_rows(uint32_t width, uint32_t height, std::string_view rows) {
  auto* compressor = libdeflate_alloc_compressor(1);
  std::string packed(1000, '\0');
  packed.resize(
      libdeflate_zlib_compress(compressor, rows.data(), rows.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(compressor);
  return header(width, height, 8, 0) + chunk("IDAT", packed) + chunk("IEND", "");
}

TEST(Png, DecodesEveryColourTypeDepthFilterAndInterlacing) {
  uint64_t seed = 1;
  for (const auto [colour, depth] : every_kind) {
    for (const bool interlaced : {false, true}) {
      for (int filter = 0; filter < 5; ++filter) {
        for (const auto& [width, height] : {std::pair{1, 1}, {3, 2}, {33, 5}, {9, 17}}) {
          auto raw = test::random_png(width, height, depth, colour, ++seed);
          raw.interlaced = interlaced;
          raw.filter = filter;
          expect_decoded(raw);
        }
      }
    }
  }
}

int paeth_of_the_standard(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int from_left = std::abs(estimate - left);
  const int from_above = std::abs(estimate - above);
  const int from_corner = std::abs(estimate - corner);
  if (from_left <= from_above && from_left <= from_corner) {
    return left;
  }
  return from_above <= from_corner ? above : corner;
}

/// Pixels of so many bytes, all bytes of a pixel alike.
void expect_paeth_of_all_neighbours(size_t pixel_bytes) {
  constexpr size_t pixels = 513;
  const size_t bytes = pixels * pixel_bytes;
  std::vector<uint8_t> row(bytes + unfilter_margin);
  std::vector<uint8_t> above(bytes + unfilter_margin);
  std::vector<uint8_t> expected(bytes);
  // Above alternate two values and the row counts up in pairs: each byte to the left meets both.
  for (int one = 0; one < 256; ++one) {
    for (int two = 0; two <= one; ++two) {
      int left = 0;
      int corner = 0;
      for (size_t i = 0; i < pixels; ++i) {
        const int up = i % 2 == 0 ? one : two;
        const auto value = static_cast<uint8_t>(i / 2);
        const int filtered = value - paeth_of_the_standard(left, up, corner);
        std::fill_n(&above[i * pixel_bytes], pixel_bytes, static_cast<uint8_t>(up));
        std::fill_n(&expected[i * pixel_bytes], pixel_bytes, value);
        std::fill_n(&row[i * pixel_bytes], pixel_bytes, static_cast<uint8_t>(filtered));
        left = value;
        corner = up;
      }
      ASSERT_TRUE(png_unfilter(4, row.data(), above.data(), bytes, pixel_bytes));
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), row.begin()))
          << pixel_bytes << " bytes, " << one << " and " << two << " above";
    }
  }
}

TEST(Png, UndoesPaethForEveryLeftAboveAndCorner) {
  expect_paeth_of_all_neighbours(1);
  expect_paeth_of_all_neighbours(3);
}

TEST(Png, DecodesInterlacedImagesOfEverySmallSize) {
  for (int width = 1; width <= 9; ++width) {
    for (int height = 1; height <= 9; ++height) {
      auto raw = test::random_png(width, height, 2, 0, static_cast<uint64_t>(width) * 10);
      raw.interlaced = true;
      expect_decoded(raw);
    }
  }
}

TEST(Png, MakesTransparentColoursAnAlphaChannel) {
  for (const auto [colour, depth] : every_kind) {
    if (colour == 4 || colour == 6) {
      continue;
    }
    for (const bool interlaced : {false, true}) {
      auto raw = test::random_png(13, 11, depth, colour, 7);
      raw.interlaced = interlaced;
      if (colour == 3) {
        raw.transparent = {0, 128};  // fewer than there are colours: the rest is opaque
      } else {
        raw.transparent.assign(raw.samples.begin(), raw.samples.begin() + raw.samples_a_pixel());
      }
      expect_decoded(raw);
      EXPECT_EQ(read_image_info(test::write_by_libpng(raw), "").channels % 2, 0);
    }
  }
}

TEST(Png, ReadsDataThatIsSplitAmongManyChunks) {
  auto raw = test::random_png(40, 30, 8, 2, 3);
  const auto whole = test::write_by_libpng(raw);
  const auto begin = whole.find("IDAT") - 4;
  const size_t size = get_be32(whole.data() + begin);
  std::string split = whole.substr(0, begin);
  for (size_t at = 0; at < size; at += 7) {
    split += chunk("IDAT",
                   std::string_view{whole}.substr(begin + 8 + at, std::min<size_t>(7, size - at)));
  }
  split += chunk("IDAT", "") + whole.substr(begin + 12 + size);
  EXPECT_EQ(test::values_of(decode_image(split, "")), test::expected_values(raw));
}

TEST(Png, WritesWhatLibpngReadsBack) {
  for (int channels = 1; channels <= 4; ++channels) {
    for (const int depth : {8, 16}) {
      for (const auto& [width, height] : {std::pair{1, 1}, {5, 3}, {16, 16}, {131, 70}}) {
        const auto image = test::smooth_image(width, height, channels, depth);
        for (const int level : {0, 1, 9}) {
          SCOPED_TRACE(format("{} channels, {} bits, {}x{}, level {}", channels, depth, width,
                              height, level));
          const auto file = encode_png(image.view(), {.level = level});
          EXPECT_EQ(test::read_by_libpng(file), test::values_of(image));
          EXPECT_EQ(test::values_of(decode_image(file, "")), test::values_of(image));
          EXPECT_EQ(file, encode_png(image.view(), {.level = level}));
        }
      }
    }
  }
}

TEST(Png, WritesRowsThatStandApart) {
  const auto image = test::smooth_image(20, 10, 3);
  auto view = image.view();
  view.width = 7;  // the left part of each row
  const auto part = decode_image(encode_png(view), "");
  for (int64_t y = 0; y < 10; ++y) {
    for (int64_t i = 0; i < 21; ++i) {
      EXPECT_EQ(part.view().row(y)[i], image.view().row(y)[i]);
    }
  }
}

TEST(Png, CompressesASmoothImageWell) {
  const auto image = test::smooth_image(256, 256, 3);
  EXPECT_LT(encode_png(image.view()).size(), 0.7 * static_cast<double>(image.bytes()));
  Image flat = Image::uninitialised(256, 256, 3, 8);
  std::fill_n(flat.pixels.get(), flat.bytes(), uint8_t{200});
  EXPECT_LT(encode_png(flat.view()).size(), 2000U);
}

TEST(Png, RefusesToWriteWhatIsNoImage) {
  const auto image = test::smooth_image(4, 4, 3);
  auto view = image.view();
  view.width = 0;
  EXPECT_THROW(encode_png(view), Error);
  view = image.view();
  view.channels = 5;
  EXPECT_THROW(encode_png(view), Error);
  EXPECT_THROW(encode_png(image.view(), {.level = 13}), Error);
}

TEST(Png, RefusesAClaimAboveTheLimitsBeforeMemoryIsTaken) {
  const auto begin = std::chrono::steady_clock::now();
  test::expect_refused(header(60000, 60000, 8, 6) + chunk("IDAT", "x"), "60000 x 60000");
  test::expect_refused(header(40000, 10, 8, 0) + chunk("IDAT", "x"), "32768 a side");
  test::expect_refused(header(0x7fffffff, 0x7fffffff, 16, 6) + chunk("IDAT", "x"), "too large");
  // Within the limits, but a file so small cannot hold so many pixels.
  const auto bomb =
      header(10000, 10000, 16, 6) + chunk("IDAT", std::string(1000, 'x')) + chunk("IEND", "");
  test::expect_refused(bomb, "cut short");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds{200});

  const auto small = test::write_by_libpng(test::random_png(20, 10, 8, 0, 1));
  test::expect_refused(small, "20 x 10", {.max_pixels = 199});
  EXPECT_EQ(test::refusal(small, {.max_pixels = 200, .max_side = 20}), "no error");
  auto raw = test::random_png(20, 10, 16, 6, 1);
  EXPECT_EQ(test::refusal(test::write_by_libpng(raw), {.max_bytes = 2000}), "no error");
  raw.interlaced = true;  // its rows and its pixels lie apart
  test::expect_refused(test::write_by_libpng(raw), "at most 2000", {.max_bytes = 2000});
}

TEST(Png, NamesAFileThatIsCutShort) {
  for (const bool interlaced : {false, true}) {
    auto raw = test::random_png(64, 48, 8, 2, 5);
    raw.interlaced = interlaced;
    const auto file = test::write_by_libpng(raw);
    for (size_t part = 0; part < 16; ++part) {
      const auto message = test::refusal(file.substr(0, file.size() * part / 16));
      EXPECT_NE(message, "no error") << part;
      if (part > 0) {
        EXPECT_NE(message.find("cut short"), std::string::npos) << message;
      }
    }
    EXPECT_NE(test::refusal(file.substr(0, file.size() - 1)), "no error");
  }
}

TEST(Png, SurvivesEveryKindOfDamage) {
  Rng rng{11};
  std::set<std::string> messages;
  for (const auto [colour, depth] : every_kind) {
    auto raw = test::random_png(23, 19, depth, colour, 2);
    raw.interlaced = depth == 8;
    const auto file = test::write_by_libpng(raw);
    for (int round = 0; round < 300; ++round) {
      auto damaged = file;
      for (int64_t flips = 1 + rng.below(3); flips > 0; --flips) {
        const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(file.size())));
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << rng.below(8));
      }
      messages.insert(test::refusal(damaged));
    }
  }
  EXPECT_GT(messages.size(), 10U);
}

TEST(Png, SurvivesDamageBehindValidChecksums) {
  Rng rng{12};
  for (const auto [colour, depth] : every_kind) {
    auto raw = test::random_png(23, 19, depth, colour, 2);
    const auto file = test::write_by_libpng(raw);
    for (int round = 0; round < 300; ++round) {
      auto damaged = file;
      for (size_t at = 8; at + 12 <= damaged.size();) {
        const size_t size = get_be32(damaged.data() + at);
        if (size > 0 && rng.below(2) == 0) {
          const auto place = at + 8 + static_cast<size_t>(rng.below(static_cast<int64_t>(size)));
          damaged[place] = static_cast<char>(rng.below(256));
        }
        std::string sum;
        put_be32(sum, libdeflate_crc32(0, damaged.data() + at + 4, size + 4));
        damaged.replace(at + 8 + size, 4, sum);
        at += size + 12;
      }
      test::refusal(damaged, {.max_pixels = 1'000'000});
    }
  }
}

TEST(Png, SaysWhatIsWrong) {
  using std::string_literals::operator""s;
  test::expect_refused("", "empty");
  test::expect_refused("GIF89a", "no PNG and no JPEG");
  test::expect_refused(header(0, 5, 8, 0), "0 x 5");
  test::expect_refused(header(5, 5, 3, 0), "3 bits");
  test::expect_refused(header(5, 5, 8, 3) + chunk("IDAT", "x") + chunk("IEND", ""), "palette");
  test::expect_refused(header(5, 5, 8, 0) + chunk("IEND", ""), "no pixels");
  test::expect_refused(header(5, 5, 8, 0) + chunk("ABCD", "") + chunk("IEND", ""), "ABCD");
  test::expect_refused(png_of_rows(2, 2, "\0ab\0"s), "fewer");
  test::expect_refused(png_of_rows(2, 2, "\0ab\0cde"s), "more");
  test::expect_refused(png_of_rows(2, 2, "\0ab\5cd"s), "filter 5");
  EXPECT_EQ(test::refusal(png_of_rows(2, 2, "\0ab\0cd"s)), "no error");
  const std::string palette = header(2, 1, 8, 3) + chunk("PLTE", "abcdef");
  const auto data = png_of_rows(2, 1, "\0\1\2"s).substr(header(2, 1, 8, 0).size());
  test::expect_refused(palette + data, "colour 2 of a palette of 2");
}

}  // namespace
}  // namespace muster
