#include <muster/base/error.h>
#include <muster/matting/errors.h>

#include "tests/matting/pictures.h"
#include "tests/matting/reference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace muster {
namespace {

using test::ChainEvents;
using test::Grid;
using test::profiles;
using test::random_grid;
using test::random_prediction;
using test::random_trimap;
using test::SlowReference;
using test::styles;
using test::unknown_of;

void expect_close(double actual, double expected, double relative) {
  EXPECT_NEAR(actual, expected, relative * std::abs(expected) + 1e-20);
}

void expect_equal(const RegionErrors& actual, const RegionErrors& expected) {
  EXPECT_EQ(actual.n, expected.n);
  EXPECT_EQ(actual.sums, expected.sums);
  ASSERT_EQ(actual.values.has_value(), expected.values.has_value());
  if (actual.values) {
    expect_close(actual.values->sad, expected.values->sad, 1e-12);
    expect_close(actual.values->mse, expected.values->mse, 1e-12);
    expect_close(actual.values->grad, expected.values->grad, 1e-9);
    expect_close(actual.values->conn, expected.values->conn, 1e-12);
  }
}

/// In every profile, with a trimap. Returns what the chain of components met.
template <typename T>
ChainEvents agree_with_reference(const Grid<T>& prediction, const Grid<T>& truth,
                                 const Grid<uint8_t>& trimap, MattingWorkspace& workspace) {
  ChainEvents events;
  for (const auto profile : profiles) {
    SCOPED_TRACE("profile " + std::to_string(static_cast<int>(profile)));
    const SlowReference<T> reference{prediction, truth, profile};
    events += reference.events();
    const auto errors = matting_errors(prediction.view(), truth.view(), trimap.view(),
                                       {.profile = profile}, workspace);
    EXPECT_TRUE(errors.unknown.has_value());
    expect_equal(errors.unknown.value_or(RegionErrors{}), reference.errors(unknown_of(trimap)));
    expect_equal(errors.all, reference.errors(std::vector<bool>(truth.values.size(), true)));
  }
  return events;
}

template <typename T>
void agree_on_small_pictures(uint64_t seed, int pictures) {
  MattingWorkspace workspace;
  ChainEvents events;
  for (int i = 0; i < pictures && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("picture " + std::to_string(i));
    Rng rng{seed, static_cast<uint64_t>(i)};
    const int style = static_cast<int>(rng.below(styles));
    const auto truth = random_grid<T>(rng, static_cast<int>(1 + rng.below(9)),
                                      static_cast<int>(1 + rng.below(9)), style);
    const auto prediction = random_prediction(rng, truth, style);
    const auto trimap = random_trimap(rng, truth.width, truth.height);
    events += agree_with_reference(prediction, truth, trimap, workspace);
  }
  EXPECT_GT(events.ties, pictures / 10);
  EXPECT_GT(events.empty_levels, pictures / 10);
  EXPECT_GT(events.breaks, pictures / 10);
}

TEST(MattingErrors, Of8BitPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_small_pictures<uint8_t>(1, 2000);
}

TEST(MattingErrors, OfFloatPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_small_pictures<float>(2, 2000);
}

TEST(MattingErrors, Of16BitPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_small_pictures<uint16_t>(3, 2000);
}

TEST(MattingErrors, OfDoublePicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_small_pictures<double>(4, 2000);
}

/// Around the sizes in which rows are taken: 32, 64 columns, 64 pixels a word.
template <typename T>
void agree_on_wide_pictures(uint64_t seed) {
  MattingWorkspace workspace;
  for (const int width : {31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 200}) {
    for (const int height : {1, 2, 5, 14}) {
      SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height));
      Rng rng{seed, static_cast<uint64_t>(width), static_cast<uint64_t>(height)};
      const int style = static_cast<int>(rng.below(styles));
      const auto truth = random_grid<T>(rng, width, height, style);
      const auto prediction = random_prediction(rng, truth, style);
      agree_with_reference(prediction, truth, random_trimap(rng, width, height), workspace);
    }
  }
}

TEST(MattingErrors, OfWide8BitPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_wide_pictures<uint8_t>(11);
}

TEST(MattingErrors, OfWide16BitPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_wide_pictures<uint16_t>(12);
}

TEST(MattingErrors, OfWideFloatPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_on_wide_pictures<float>(13);
}

/// Flat and equal areas, which the gradient passes over, between others: rectangles of one value in
/// both pictures, in one of them, or of noise.
template <typename T>
void agree_on_quiet_pictures(uint64_t seed) {
  MattingWorkspace workspace;
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE("picture " + std::to_string(i));
    Rng rng{seed, static_cast<uint64_t>(i)};
    const int style = static_cast<int>(rng.below(styles));
    const int width = static_cast<int>(60 + rng.below(150));
    const int height = static_cast<int>(20 + rng.below(60));
    auto truth = Grid<T>{width, height, std::vector<T>(static_cast<size_t>(width * height))};
    auto prediction = truth;
    for (int patch = 0; patch < 5; ++patch) {
      const int left = static_cast<int>(rng.below(width));
      const int top = static_cast<int>(rng.below(height));
      const int right = std::min(width, left + static_cast<int>(1 + rng.below(70)));
      const int bottom = std::min(height, top + static_cast<int>(1 + rng.below(30)));
      const T value = test::random_value<T>(rng, style);
      const int kind = static_cast<int>(rng.below(4));
      for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) {
          const T here = kind == 0 ? test::random_value<T>(rng, style) : value;
          prediction.values[y * width + x] = here;
          if (kind < 3) {
            truth.values[y * width + x] = here;
          }
        }
      }
    }
    agree_with_reference(prediction, truth, random_trimap(rng, width, height), workspace);
  }
}

TEST(MattingErrors, Of8BitPicturesWithQuietAreasAgreeWithAFloodFillAnd81Taps) {
  agree_on_quiet_pictures<uint8_t>(21);
}

TEST(MattingErrors, OfFloatPicturesWithQuietAreasAgreeWithAFloodFillAnd81Taps) {
  agree_on_quiet_pictures<float>(22);
}

TEST(MattingErrors, WithoutATrimapHaveTheWholePictureAlone) {
  MattingWorkspace workspace;
  Rng rng{5};
  const auto truth = random_grid<uint8_t>(rng, 33, 17, 1);
  const auto prediction = random_prediction(rng, truth, 0);
  const auto trimap = random_trimap(rng, 33, 17);
  const auto without = matting_errors(prediction.view(), truth.view(), std::nullopt, {}, workspace);
  const auto with = matting_errors(prediction.view(), truth.view(), trimap.view(), {}, workspace);
  EXPECT_FALSE(without.unknown.has_value());
  EXPECT_EQ(without.all.sums, with.all.sums);
  EXPECT_EQ(without.all.values->grad, with.all.values->grad);
}

TEST(MattingErrors, DoNotDependOnTheStride) {
  Rng rng{6};
  const auto truth = random_grid<uint8_t>(rng, 7, 5, 0);
  const auto prediction = random_grid<uint8_t>(rng, 7, 5, 0);
  std::vector<uint8_t> spread(55, 200);
  for (int64_t y = 0; y < 5; ++y) {
    std::copy_n(prediction.values.begin() + y * 7, 7, spread.begin() + y * 11);
  }
  MattingWorkspace workspace;
  const auto dense = matting_errors(prediction.view(), truth.view(), std::nullopt, {}, workspace);
  const auto strided =
      matting_errors(Picture8{spread.data(), 7, 5, 11}, truth.view(), std::nullopt, {}, workspace);
  EXPECT_EQ(strided.all.sums, dense.all.sums);
  EXPECT_EQ(strided.all.values->grad, dense.all.values->grad);
}

TEST(MattingErrors, GiveTheSameBitsWhateverTheWorkspaceHeldBefore) {
  Rng rng{7};
  const auto large = random_grid<float>(rng, 40, 30, 5);
  const auto truth = random_grid<float>(rng, 13, 9, 5);
  const auto prediction = random_grid<float>(rng, 13, 9, 5);
  MattingWorkspace fresh;
  MattingWorkspace used;
  matting_errors(large.view(), large.view(), std::nullopt, {.profile = MattingProfile::p3m}, used);
  for (const auto profile : profiles) {
    const MattingOptions options{.profile = profile};
    const auto one = matting_errors(prediction.view(), truth.view(), std::nullopt, options, fresh);
    const auto two = matting_errors(prediction.view(), truth.view(), std::nullopt, options, used);
    EXPECT_EQ(one.all.values->sad, two.all.values->sad);
    EXPECT_EQ(one.all.values->grad, two.all.values->grad);
    EXPECT_EQ(one.all.values->conn, two.all.values->conn);
  }
}

TEST(MattingErrors, OfEqualPicturesAreExactlyZero) {
  Rng rng{8};
  const auto picture = random_grid<float>(rng, 23, 19, 5);
  MattingWorkspace workspace;
  for (const auto profile : profiles) {
    const auto errors = matting_errors(picture.view(), picture.view(), std::nullopt,
                                       {.profile = profile}, workspace);
    EXPECT_EQ(errors.all.values->sad, 0.0);
    EXPECT_EQ(errors.all.values->mse, 0.0);
    EXPECT_EQ(errors.all.values->grad, 0.0);
    EXPECT_EQ(errors.all.values->conn, 0.0);
  }
}

TEST(MattingErrors, OfFlatPicturesHaveGradientExactlyZero) {
  const Grid<uint8_t> prediction{11, 10, std::vector<uint8_t>(110, 77)};
  const Grid<uint8_t> truth{11, 10, std::vector<uint8_t>(110, 201)};
  MattingWorkspace workspace;
  for (const auto profile : profiles) {
    EXPECT_EQ(matting_errors(prediction.view(), truth.view(), std::nullopt, {.profile = profile},
                             workspace)
                  .all.values->grad,
              0.0);
  }
}

TEST(MattingErrors, OfAUnitStepHaveTheGradientOfTheDefinition) {
  Grid<uint8_t> step{16, 1, std::vector<uint8_t>(16, 0)};
  std::fill(step.values.begin() + 8, step.values.end(), uint8_t{255});
  const Grid<uint8_t> black{16, 1, std::vector<uint8_t>(16, 0)};
  double sum = 0.0;
  for (const double value : {.0963602146, .5273677695, 1.5561907748, 2.6619966605}) {
    sum += 2.0 * value * value;
  }
  MattingWorkspace workspace;
  const auto errors = matting_errors(step.view(), black.view(), std::nullopt, {}, workspace);
  EXPECT_NEAR(errors.all.values->grad, sum / 1000.0, 1e-11);
}

TEST(MattingErrors, ReachAThresholdWhereTheDoubleIsExactlyIt) {
  // 6 * 0.1 is above 0.6 in double, and a threshold computed so would miss the value.
  const Grid<double> prediction{3, 1, {0.6, 0.6, 0.6}};
  const Grid<double> truth{3, 1, {0.7, 0.7, 0.7}};
  MattingWorkspace workspace;
  EXPECT_EQ(
      matting_errors(prediction.view(), truth.view(), std::nullopt, {}, workspace).all.values->conn,
      0.0);
}

template <typename Call>
void expect_data_error(const Call& call, const std::vector<std::string>& parts) {
  try {
    call();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    for (const auto& part : parts) {
      EXPECT_NE(std::string{error.what()}.find(part), std::string::npos) << error.what();
    }
  }
}

TEST(MattingErrors, OfPicturesThatDifferInSizeAreAnErrorThatNamesBothSizes) {
  MattingWorkspace workspace;
  const Grid<uint8_t> wide{3, 2, std::vector<uint8_t>(6)};
  const Grid<uint8_t> high{2, 3, std::vector<uint8_t>(6)};
  expect_data_error([&] { matting_errors(wide.view(), high.view(), std::nullopt, {}, workspace); },
                    {"3x2", "2x3", "truth"});
  expect_data_error([&] { matting_errors(wide.view(), wide.view(), high.view(), {}, workspace); },
                    {"3x2", "2x3", "trimap"});
}

TEST(MattingErrors, OfNoPixelsAreAnError) {
  MattingWorkspace workspace;
  for (const auto& [width, height] : {std::pair{0, 0}, {0, 4}, {4, 0}}) {
    const Grid<uint8_t> empty{width, height, {}};
    expect_data_error(
        [&] { matting_errors(empty.view(), empty.view(), std::nullopt, {}, workspace); },
        {std::to_string(width) + "x" + std::to_string(height)});
  }
}

TEST(MattingErrors, OfTooManyPixelsAreRefusedBeforeAnyIsRead) {
  MattingWorkspace workspace;
  const Picture8 vast{nullptr, int64_t{1} << 31, 1, int64_t{1} << 31};
  expect_data_error([&] { matting_errors(vast, vast, std::nullopt, {}, workspace); },
                    {"2147483648x1"});
}

TEST(MattingErrors, OfValuesOutsideZeroToOneAreAnErrorThatNamesThePlace) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  MattingWorkspace workspace;
  const Grid<double> good{3, 2, std::vector<double>(6, 1.0)};
  for (const double value : {nan, infinity, -infinity, 1.0000001, -1e-300}) {
    auto bad = good;
    bad.values[4] = value;
    expect_data_error([&] { matting_errors(bad.view(), good.view(), std::nullopt, {}, workspace); },
                      {"prediction", "row 1, column 1"});
    expect_data_error([&] { matting_errors(good.view(), bad.view(), std::nullopt, {}, workspace); },
                      {"truth", "row 1, column 1"});
  }
}

}  // namespace
}  // namespace muster
