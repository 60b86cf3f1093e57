#include <muster/base/error.h>
#include <muster/base/random.h>
#include <muster/matting/errors.h>

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
using test::SlowReference;

constexpr std::array profiles{MattingProfile::dim, MattingProfile::gca, MattingProfile::matlab,
                              MattingProfile::p3m};

/// Values where the conventions differ: at thresholds and just below them, few levels, many levels.
template <typename T>
T random_value(Rng& rng, int style) {
  const auto of_full = [](double alpha) {
    return std::is_integral_v<T>
               ? static_cast<T>(std::lround(alpha * std::numeric_limits<T>::max()))
               : static_cast<T>(alpha);
  };
  switch (style) {
    case 0:
      return of_full(static_cast<double>(rng.below(256)) / 255.0);
    case 1:
      return of_full(static_cast<double>(rng.below(11)) / 10.0);
    case 2:
      return of_full(static_cast<double>(rng.below(41)) / 40.0);
    case 3:
      return of_full(rng.below(3) == 0 ? 0.0 : 1.0);
    case 4:
      return of_full(std::array{0.0, 0.31, 0.6, 0.95, 1.0}[rng.below(5)]);
    default:
      return of_full(rng.uniform());
  }
}

template <typename T>
Grid<T> random_grid(Rng& rng, int width, int height, int style) {
  Grid<T> grid{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    grid.values.push_back(random_value<T>(rng, style));
  }
  return grid;
}

/// The truth with some values changed, or another picture altogether.
template <typename T>
Grid<T> random_prediction(Rng& rng, const Grid<T>& truth, int style) {
  if (rng.below(3) == 0) {
    return random_grid<T>(rng, truth.width, truth.height, style);
  }
  auto prediction = truth;
  for (auto& value : prediction.values) {
    if (rng.below(4) == 0) {
      value = random_value<T>(rng, style);
    }
  }
  return prediction;
}

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

template <typename T>
void agree_with_reference(uint64_t seed, int pictures) {
  MattingWorkspace workspace;
  ChainEvents events;
  for (int i = 0; i < pictures; ++i) {
    Rng rng{seed, static_cast<uint64_t>(i)};
    const int style = static_cast<int>(rng.below(6));
    const auto truth = random_grid<T>(rng, static_cast<int>(1 + rng.below(9)),
                                      static_cast<int>(1 + rng.below(9)), style);
    const auto prediction = random_prediction(rng, truth, style);
    Grid<uint8_t> trimap{truth.width, truth.height, {}};
    std::vector<bool> unknown;
    for (int pixel = 0; pixel < truth.size(); ++pixel) {
      const uint8_t value = std::array<uint8_t, 7>{0, 84, 85, 128, 169, 170, 255}[rng.below(7)];
      trimap.values.push_back(value);
      unknown.push_back(value == 85 || value == 128 || value == 169);
    }
    for (const auto profile : profiles) {
      SCOPED_TRACE("picture " + std::to_string(i) + ", profile " +
                   std::to_string(static_cast<int>(profile)));
      const SlowReference<T> reference{prediction, truth, profile};
      events.ties += reference.events().ties;
      events.empty_levels += reference.events().empty_levels;
      events.breaks += reference.events().breaks;
      const auto errors = matting_errors(prediction.view(), truth.view(), trimap.view(),
                                         {.profile = profile}, workspace);
      ASSERT_TRUE(errors.unknown.has_value());
      expect_equal(*errors.unknown, reference.errors(unknown));
      expect_equal(errors.all, reference.errors(std::vector<bool>(unknown.size(), true)));
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
  EXPECT_GT(events.ties, pictures / 10);
  EXPECT_GT(events.empty_levels, pictures / 10);
  EXPECT_GT(events.breaks, pictures / 10);
}

TEST(MattingErrors, Of8BitPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_with_reference<uint8_t>(1, 2000);
}

TEST(MattingErrors, OfFloatPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_with_reference<float>(2, 2000);
}

TEST(MattingErrors, Of16BitPicturesAgreeWithAFloodFillAnd81Taps) {
  agree_with_reference<uint16_t>(3, 500);
}

TEST(MattingErrors, OfDoublePicturesAgreeWithAFloodFillAnd81Taps) {
  agree_with_reference<double>(4, 500);
}

TEST(MattingErrors, OfPicturesWiderThanABlockAgreeWithAFloodFillAnd81Taps) {
  MattingWorkspace workspace;
  for (const auto& [width, height] : {std::pair{33, 17}, {8, 20}, {1, 40}, {40, 1}, {16, 13}}) {
    Rng rng{5, static_cast<uint64_t>(width)};
    const auto truth = random_grid<uint8_t>(rng, width, height, 1);
    const auto prediction = random_prediction(rng, truth, 0);
    for (const auto profile : profiles) {
      const SlowReference<uint8_t> reference{prediction, truth, profile};
      const auto errors = matting_errors(prediction.view(), truth.view(), std::nullopt,
                                         {.profile = profile}, workspace);
      EXPECT_FALSE(errors.unknown.has_value());
      expect_equal(errors.all, reference.errors(std::vector<bool>(truth.values.size(), true)));
    }
  }
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
