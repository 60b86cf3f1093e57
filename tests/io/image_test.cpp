#include <gtest/gtest.h>
#include <muster/base/random.h>
#include <muster/io/image.h>

#include <cstring>

#include "tests/io/picture_support.h"

namespace muster {
namespace {

Image image_of(int channels, std::initializer_list<int> values, int depth = 8) {
  const auto width = static_cast<int64_t>(values.size()) / channels;
  Image image = Image::uninitialised(width, 1, channels, depth);
  size_t i = 0;
  for (const int value : values) {
    if (depth == 16) {
      const auto number = static_cast<uint16_t>(value);
      std::memcpy(&image.pixels[2 * i], &number, 2);
    } else {
      image.pixels[i] = static_cast<uint8_t>(value);
    }
    ++i;
  }
  return image;
}

using Values = std::vector<uint16_t>;

Values converted(Image image, ImageMode mode) {
  return test::values_of(convert_image(std::move(image), mode));
}

TEST(Image, ConvertsChannels) {
  EXPECT_EQ(converted(image_of(1, {7, 9}), ImageMode::rgb), (Values{7, 7, 7, 9, 9, 9}));
  EXPECT_EQ(converted(image_of(2, {7, 9}), ImageMode::rgba), (Values{7, 7, 7, 9}));
  EXPECT_EQ(converted(image_of(3, {1, 2, 3}), ImageMode::rgba), (Values{1, 2, 3, 255}));
  EXPECT_EQ(converted(image_of(3, {1, 2, 3}, 16), ImageMode::rgba), (Values{1, 2, 3, 65535}));
  EXPECT_EQ(converted(image_of(4, {1, 2, 3, 4}), ImageMode::rgb), (Values{1, 2, 3}));
  EXPECT_EQ(converted(image_of(4, {1, 2, 3, 4}), ImageMode::unchanged), (Values{1, 2, 3, 4}));
  EXPECT_EQ(converted(image_of(2, {7, 9}), ImageMode::gray), (Values{7}));
}

TEST(Image, TakesTheLumaOfColours) {
  EXPECT_EQ(converted(image_of(3, {255, 0, 0, 0, 255, 0, 0, 0, 255}), ImageMode::gray),
            (Values{76, 150, 29}));
  for (const int depth : {8, 16}) {
    for (int v = 0; v < 1 << depth; ++v) {
      ASSERT_EQ(converted(image_of(3, {v, v, v}, depth), ImageMode::gray)[0], v);
    }
  }
}

TEST(Image, TakesAlphaOnlyWhereItSaysSomething) {
  EXPECT_EQ(converted(image_of(2, {7, 255, 9, 254}), ImageMode::alpha), (Values{255, 254}));
  EXPECT_EQ(converted(image_of(2, {7, 255, 9, 255}), ImageMode::alpha), (Values{7, 9}));
  EXPECT_EQ(converted(image_of(4, {1, 2, 3, 0}), ImageMode::alpha), (Values{0}));
  EXPECT_EQ(converted(image_of(4, {8, 8, 8, 65535}, 16), ImageMode::alpha), (Values{8}));
  EXPECT_EQ(converted(image_of(1, {5}), ImageMode::alpha), (Values{5}));
}

TEST(Jpeg, DecodesGrayAndColour) {
  for (const int channels : {1, 3}) {
    for (const bool progressive : {false, true}) {
      const auto image = test::smooth_image(61, 47, channels);
      const auto file = test::write_jpeg(image, channels, progressive);
      const auto decoded = decode_image(file, "b.jpg");
      const auto info = read_image_info(file, "b.jpg");
      EXPECT_EQ(info.width, 61);
      EXPECT_EQ(info.height, 47);
      EXPECT_EQ(info.channels, channels);
      ASSERT_EQ(decoded.bytes(), image.bytes());
      double error = 0;
      for (int64_t i = 0; i < image.bytes(); ++i) {
        error +=
            std::abs(decoded.pixels[static_cast<size_t>(i)] - image.pixels[static_cast<size_t>(i)]);
      }
      EXPECT_LT(error / static_cast<double>(image.bytes()), 4);
    }
  }
}

TEST(Jpeg, NamesAFileThatIsCutShort) {
  for (const bool progressive : {false, true}) {
    const auto file = test::write_jpeg(test::smooth_image(200, 150, 3), 3, progressive);
    for (size_t part = 1; part < 16; ++part) {
      EXPECT_NE(test::refusal(file.substr(0, file.size() * part / 16)), "no error") << part;
    }
    EXPECT_NE(test::refusal(file.substr(0, file.size() - 2)), "no error");
    EXPECT_EQ(test::refusal(file), "no error");
  }
}

TEST(Jpeg, RefusesPrintColoursAndLargeClaims) {
  const auto image = test::smooth_image(16, 16, 4);
  test::expect_refused(test::write_jpeg(image, 4, false), "CMYK");
  auto file = test::write_jpeg(test::smooth_image(16, 16, 1), 1, false);
  const auto frame = file.find("\xff\xc0");
  file.replace(frame + 5, 4, "\xea\x60\xea\x60");
  test::expect_refused(file, "60000 x 60000");
  const auto scans = test::write_jpeg(test::smooth_image(16, 16, 3), 3, true);
  test::expect_refused(scans, "would take 2304 bytes", {.max_bytes = 2000});
}

TEST(Jpeg, SurvivesEveryKindOfDamage) {
  Rng rng{5};
  for (const bool progressive : {false, true}) {
    const auto file = test::write_jpeg(test::smooth_image(70, 50, 3), 3, progressive);
    for (int round = 0; round < 500; ++round) {
      auto damaged = file;
      for (int64_t flips = 1 + rng.below(4); flips > 0; --flips) {
        const auto at = 3 + static_cast<size_t>(rng.below(static_cast<int64_t>(file.size()) - 3));
        damaged[at] = static_cast<char>(damaged[at] ^ 1 << rng.below(8));
      }
      test::refusal(damaged);
    }
  }
}

}  // namespace
}  // namespace muster
