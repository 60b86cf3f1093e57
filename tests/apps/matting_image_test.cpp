// One image: what its files become, and that its errors are those of a slow reference.

#include "apps/muster/matting/image.h"

#include "support/temp_folder.h"
#include "tests/io/picture_support.h"
#include "tests/matting/reference.h"

#include <gtest/gtest.h>
#include <libdeflate.h>
#include <muster/base/error.h>
#include <muster/base/files.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

namespace muster::app {
namespace {

using test::Grid;
using test::RawPng;
using Values = std::vector<uint16_t>;

/// The matte that a file's values mean, by the words of the interface.
Values expected_matte(const Values& values, int channels, unsigned full) {
  const auto step = static_cast<size_t>(channels);
  bool has_alpha = false;
  for (size_t i = step - 1; channels % 2 == 0 && i < values.size(); i += step) {
    has_alpha = has_alpha || values[i] != full;
  }
  Values matte;
  for (size_t i = 0; i < values.size(); i += step) {
    const uint32_t luma = (19595U * values[i] + 38470U * values[i + std::min<size_t>(1, step - 1)] +
                           7471U * values[i + std::min<size_t>(2, step - 1)] + 32768U) /
                          65536U;
    matte.push_back(has_alpha      ? values[i + step - 1]
                    : channels < 3 ? values[i]
                                   : static_cast<uint16_t>(luma));
  }
  return matte;
}

struct Case {
  RawPng raw{};
  Values matte{};
  unsigned full = 255;
};

/// Every kind of PNG, transparency and interlacing included.
std::vector<Case> all_kinds(int64_t width, int64_t height) {
  std::vector<Case> cases;
  for (const auto& [colour, depth] : std::vector<std::pair<int, int>>{{0, 1},
                                                                      {0, 2},
                                                                      {0, 4},
                                                                      {0, 8},
                                                                      {0, 16},
                                                                      {2, 8},
                                                                      {2, 16},
                                                                      {3, 1},
                                                                      {3, 2},
                                                                      {3, 4},
                                                                      {3, 8},
                                                                      {4, 8},
                                                                      {4, 16},
                                                                      {6, 8},
                                                                      {6, 16}}) {
    for (int variant = 0; variant < 3; ++variant) {
      Case one{.raw = test::random_png(width, height, depth, colour, cases.size() + 1)};
      one.full = depth == 16 ? 65535 : 255;
      auto& raw = one.raw;
      raw.interlaced = variant == 1;
      if (variant == 2 && colour == 3) {
        raw.transparent = {0, 128};
      } else if (variant == 2 && colour < 3) {
        raw.transparent.assign(raw.samples.begin(), raw.samples.begin() + raw.samples_a_pixel());
      } else if (variant == 2) {  // opaque everywhere
        const auto step = static_cast<size_t>(raw.samples_a_pixel());
        for (size_t i = step - 1; i < raw.samples.size(); i += step) {
          raw.samples[i] = static_cast<uint16_t>(one.full);
        }
      }
      const Values values = test::expected_values(raw);
      const auto channels = static_cast<int>(values.size() / static_cast<size_t>(width * height));
      one.matte = expected_matte(values, channels, one.full);
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

class MattingImage : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    write_file_atomically(folder_ / name, bytes, Durability::process);
    return folder_ / name;
  }
  [[nodiscard]] MattingSample sample_of(const std::string& prediction,
                                        const std::string& truth) const {
    return {.prediction = write("p.png", prediction), .truth = write("g.png", truth)};
  }

  test::TempFolder folder_;
  MemoryGate gate_{MemoryPlan::most_of_an_image};
  MattingWorkspace workspace_;
};

std::string message_of(const std::function<void()>& body) {
  try {
    body();
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
}

Grid<uint16_t> on_grid(const Case& one, bool fine) {
  Grid<uint16_t> grid{static_cast<int>(one.raw.width), static_cast<int>(one.raw.height), one.matte};
  for (auto& value : grid.values) {
    value = static_cast<uint16_t>(fine && one.full == 255 ? 257 * value : value);
  }
  return grid;
}

void expect_near(const RegionRow& row, const RegionErrors& expected, const std::string& what) {
  ASSERT_EQ(row.n, expected.n) << what;
  ASSERT_EQ(row.values.has_value(), expected.values.has_value()) << what;
  for (const auto& column : error_columns) {
    const double value = (*expected.values).*column.member;
    EXPECT_NEAR((*row.values).*column.member, value, 1e-9 * value + 1e-15) << what << column.name;
  }
}

TEST_F(MattingImage, OfEveryKindOfPngHasTheErrorsOfASlowReference) {
  const auto cases = all_kinds(9, 7);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& prediction = cases[i];
    const Case& truth = cases[(7 * i + 3) % cases.size()];
    const auto sample = sample_of(write_by_libpng(prediction.raw), write_by_libpng(truth.raw));
    const ImagePlan plan = plan_image(sample, gate_);
    const ImageRow row = compute_errors(sample, load_mattes(sample), plan, {}, workspace_);
    const std::vector<bool> all(63, true);
    const std::string what = "case " + std::to_string(i) + " ";
    if (prediction.full == 255 && truth.full == 255) {
      Grid<uint8_t> p{9, 7, {prediction.matte.begin(), prediction.matte.end()}};
      Grid<uint8_t> g{9, 7, {truth.matte.begin(), truth.matte.end()}};
      expect_near(row.all, test::SlowReference{p, g, MattingProfile::dim}.errors(all), what);
    } else {
      const auto p = on_grid(prediction, true);
      const auto g = on_grid(truth, true);
      expect_near(row.all, test::SlowReference{p, g, MattingProfile::dim}.errors(all), what);
    }
    EXPECT_FALSE(row.unknown.has_value());
  }
}

TEST_F(MattingImage, ATrimapOfAnyKindIsScaledToEightBits) {
  RawPng flat{.width = 4, .height = 1, .samples = {0, 0, 0, 0}};
  auto sample = sample_of(write_by_libpng(flat), write_by_libpng(flat));
  const auto unknown = [&](const RawPng& trimap) {
    sample.trimap = write("t.png", write_by_libpng(trimap));
    return compute_errors(sample, load_mattes(sample), plan_image(sample, gate_), {}, workspace_)
        .unknown->n;
  };
  EXPECT_EQ(unknown({.width = 4, .height = 1, .samples = {84, 85, 169, 170}}), 2);
  EXPECT_EQ(unknown({.width = 4, .height = 1, .samples = {0, 1, 2, 255}}), 0);
  EXPECT_EQ(unknown({.width = 4, .height = 1, .depth = 2, .samples = {0, 1, 2, 3}}), 1);
  EXPECT_EQ(unknown({.width = 4, .height = 1, .depth = 4, .samples = {4, 5, 9, 10}}), 2);
  EXPECT_EQ(unknown({.width = 4,
                     .height = 1,
                     .depth = 16,
                     .samples = {84 * 257, 85 * 257, 43690, 169 * 257}}),
            2);
  EXPECT_EQ(unknown({.width = 4,
                     .height = 1,
                     .depth = 8,
                     .colour = 2,
                     .samples = {0, 0, 0, 128, 128, 128, 127, 127, 127, 255, 255, 255}}),
            2);
  EXPECT_EQ(unknown({.width = 4,
                     .height = 1,
                     .depth = 8,
                     .colour = 4,
                     .samples = {255, 0, 255, 128, 0, 128, 128, 255}}),
            2);
}

TEST_F(MattingImage, OfAJpegIsItsLuma) {
  const Image picture = test::smooth_image(40, 30, 3);
  const std::string jpeg = test::write_jpeg(picture, 3, true);
  const auto sample = sample_of(jpeg, jpeg);
  const Mattes mattes = load_mattes(sample);
  EXPECT_EQ(mattes.truth.channels, 1);
  EXPECT_EQ(mattes.truth.depth, 8);
  const auto row = compute_errors(sample, mattes, plan_image(sample, gate_), {}, workspace_);
  EXPECT_EQ(row.all.values->sad, 0.0);
}

TEST_F(MattingImage, WithAFaultIsAnErrorThatNamesTheFile) {
  const std::string good = write_by_libpng(test::random_png(8, 6, 8, 0, 1));
  const std::string small = write_by_libpng(test::random_png(6, 8, 8, 0, 1));
  const auto refusal = [&](const std::string& prediction) {
    return message_of([&] {
      const auto sample = sample_of(prediction, good);
      plan_image(sample, gate_);
      load_mattes(sample);
    });
  };
  const std::string path = (folder_ / "p.png").string();
  EXPECT_EQ(refusal(small).find(path + ": has 6 x 8 pixels, and "), 0U) << refusal(small);
  for (const auto& bad : {std::string{}, std::string{"no picture"}, good.substr(0, 20),
                          good.substr(0, good.size() - 20)}) {
    EXPECT_EQ(refusal(bad).find(path), 0U) << refusal(bad);
  }
  std::filesystem::remove(folder_ / "p.png");
  const MattingSample missing{.prediction = folder_ / "p.png", .truth = folder_ / "g.png"};
  errno = 0;
  EXPECT_EQ(message_of([&] { plan_image(missing, gate_); }),
            path + ": cannot be read: No such file or directory");
}

TEST_F(MattingImage, WhoseHeaderLiesBehindLongTextsIsRead) {
  std::string file = write_by_libpng(test::random_png(8, 6, 8, 0, 1));
  for (int i = 0; i < 20; ++i) {
    const std::string body = "teXt" + std::string(0x2000, 'a');
    const uint32_t checksum = libdeflate_crc32(0, body.data(), body.size());
    std::string chunk = std::string("\x00\x00\x20\x00", 4) + body;
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      chunk += static_cast<char>(checksum >> shift);
    }
    file.insert(33, chunk);  // behind IHDR
  }
  const auto sample = sample_of(file, file);
  EXPECT_EQ(plan_image(sample, gate_).width, 8);
  EXPECT_EQ(load_mattes(sample).truth.height, 6);
}

}  // namespace
}  // namespace muster::app
