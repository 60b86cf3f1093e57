#include <muster/metrics/image_quality.h>

#include "tests/metrics/ranks.h"
#include "tests/metrics/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

using test::message_of;
using test::tensor;

std::vector<double> wave(int64_t count, double phase) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(0.5 + 0.5 * std::sin(0.7 * static_cast<double>(i) + phase));
  }
  return values;
}

at::Tensor picture(double phase, int64_t height = 12, int64_t width = 9) {
  return tensor(wave(height * width, phase), {1, 1, height, width});
}

TEST(PeakSignalNoiseRatio, IsOfTheMeanErrorOrTheMeanOfPictures) {
  const auto target = tensor({0, 0, 0, 0}, {2, 1, 1, 2});
  const auto preds = tensor({0.1, 0.1, 0.01, 0.01}, {2, 1, 1, 2});
  PeakSignalNoiseRatio together{{.data_range = 1.0}};
  together.update(preds, target);
  EXPECT_NEAR(*together.value(), -10.0 * std::log10((0.01 + 0.0001) / 2.0), 1e-12);
  PeakSignalNoiseRatio apart{{.data_range = 1.0, .per_image = true}};
  apart.update(preds, target);
  EXPECT_NEAR(*apart.value(), 30.0, 1e-12);
}

TEST(PeakSignalNoiseRatio, OfEqualPicturesIsInfinite) {
  PeakSignalNoiseRatio metric{{.data_range = 255.0}};
  metric.update(picture(1.0), picture(1.0));
  EXPECT_EQ(metric.value(), HUGE_VAL);
}

TEST(PeakSignalNoiseRatio, MustBeToldTheRangeOfData) {
  message_of(ErrorKind::usage, [] { PeakSignalNoiseRatio{{}}; });
  message_of(ErrorKind::usage, [] { PeakSignalNoiseRatio{{.data_range = 1.0, .base = 1.0}}; });
  message_of(ErrorKind::usage, [] { StructuralSimilarityIndexMeasure{{}}; });
}

TEST(SSIM, OfEqualPicturesIsOneAndOfOthersBelow) {
  StructuralSimilarityIndexMeasure metric{{.data_range = 1.0}};
  metric.update(picture(0.0), picture(0.0));
  EXPECT_NEAR(*metric.value(), 1.0, 1e-12);
  metric.update(picture(0.0, 7, 20), picture(2.0, 7, 20));
  EXPECT_LT(*metric.value(), 0.9);
}

TEST(SSIM, OfFlatPicturesIsTheLuminanceTerm) {
  StructuralSimilarityIndexMeasure metric{{.data_range = 1.0, .gaussian_kernel = false}};
  metric.update(tensor(std::vector<double>(200, 0.5), {1, 2, 10, 10}),
                tensor(std::vector<double>(200, 0.25), {1, 2, 10, 10}));
  EXPECT_NEAR(*metric.value(), (0.25 + 1e-4) / (0.3125 + 1e-4), 1e-9);
}

TEST(SSIM, RefusesPicturesThatAreSmallerThanHalfAWindow) {
  StructuralSimilarityIndexMeasure metric{{.data_range = 1.0}};
  metric.update(picture(0.0, 6, 6), picture(0.0, 6, 6));
  EXPECT_NE(
      message_of(ErrorKind::usage, [&] { metric.update(picture(0.0, 5, 6), picture(0.0, 5, 6)); })
          .find("6 or more"),
      std::string::npos);
  message_of(ErrorKind::usage, [&] {
    metric.update(tensor(wave(64, 0.0), {8, 8}), tensor(wave(64, 0.0), {8, 8}));
  });
  message_of(ErrorKind::usage,
             [] { StructuralSimilarityIndexMeasure{{.data_range = 1.0, .kernel_size = 4}}; });
}

TEST(ImageMetrics, GiveTheSameBitsForAnySplit) {
  const auto update = [](auto& metric, int64_t i) {
    metric.update(picture(0.1 * static_cast<double>(i)), picture(0.3 * static_cast<double>(i)));
  };
  const auto psnr = [](bool per_image) {
    return [=] { return PeakSignalNoiseRatio{{.data_range = 1.0, .per_image = per_image}}; };
  };
  EXPECT_EQ(test::results_of_splits(9, psnr(false), update).size(), 1U);
  EXPECT_EQ(test::results_of_splits(9, psnr(true), update).size(), 1U);
  const auto ssim = [] { return StructuralSimilarityIndexMeasure{{.data_range = 1.0}}; };
  EXPECT_EQ(test::results_of_splits(9, ssim, update).size(), 1U);
}

}  // namespace
}  // namespace muster
