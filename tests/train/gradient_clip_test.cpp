#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/train/gradient_clip.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/base/expect_error.h"

namespace muster {
namespace {

/// Parameters with the gradients {3, 4}, none, and {12}: the norm is 13.
struct Three {
  std::vector<at::Tensor> parameters{at::zeros({2}).requires_grad_(),
                                     at::zeros({7}).requires_grad_(),
                                     at::zeros({1}).requires_grad_()};

  Three() { set(3.0F, 4.0F, 12.0F); }
  void set(float a, float b, float c) {
    parameters[0].mutable_grad() = at::tensor({a, b});
    parameters[2].mutable_grad() = at::tensor({c});
  }
  [[nodiscard]] std::vector<float> gradients() const {
    const auto first = parameters[0].grad();
    return {first[0].item<float>(), first[1].item<float>(), parameters[2].grad().item<float>()};
  }
};

TEST(ClipGradNorm, ScalesAllGradientsByOneFactor) {
  Three three;
  EXPECT_EQ(clip_grad_norm(three.parameters, 1.3), 13.0);
  const auto gradients = three.gradients();
  EXPECT_NEAR(gradients[0], 0.3, 1e-6);
  EXPECT_NEAR(gradients[1], 0.4, 1e-6);
  EXPECT_NEAR(gradients[2], 1.2, 1e-6);
  EXPECT_FALSE(three.parameters[1].grad().defined());
}

TEST(ClipGradNorm, LeavesSmallGradientsAsTheyAre) {
  Three three;
  for (const double bound : {13.1, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(clip_grad_norm(three.parameters, bound), 13.0);
    EXPECT_EQ(three.gradients(), (std::vector<float>{3, 4, 12}));
  }
}

TEST(ClipGradNorm, KeepsToABoundOfZeroAndSpreadsWhatIsNotFinite) {
  Three three;
  EXPECT_EQ(clip_grad_norm(three.parameters, 0.0), 13.0);
  EXPECT_EQ(three.gradients(), (std::vector<float>{0, 0, 0}));
  three.set(1, INFINITY, 2);
  EXPECT_EQ(clip_grad_norm(three.parameters, 1.0), INFINITY);
  EXPECT_EQ(three.gradients()[0], 0.0F);
  EXPECT_TRUE(std::isnan(three.gradients()[1]));
  three.set(1, NAN, 2);
  EXPECT_TRUE(std::isnan(clip_grad_norm(three.parameters, 1.0)));
  EXPECT_TRUE(std::isnan(three.gradients()[2]));
}

TEST(ClipGradNorm, IsZeroWithoutGradients) {
  const std::vector<at::Tensor> none{at::zeros({3}).requires_grad_()};
  EXPECT_EQ(clip_grad_norm({}, 1.0), 0.0);
  EXPECT_EQ(clip_grad_norm(none, 1.0), 0.0);
  clip_grad_value(none, 1.0);
  EXPECT_FALSE(none[0].grad().defined());
}

TEST(ClipGradValue, LimitsEachNumberBothWays) {
  Three three;
  three.set(-5, 0.5F, 3);
  clip_grad_value(three.parameters, 2.0);
  EXPECT_EQ(three.gradients(), (std::vector<float>{-2, 0.5F, 2}));
  three.set(NAN, -INFINITY, INFINITY);
  clip_grad_value(three.parameters, 2.0);
  EXPECT_TRUE(std::isnan(three.gradients()[0]));
  EXPECT_EQ(three.gradients()[1], -2.0F);
  EXPECT_EQ(three.gradients()[2], 2.0F);
}

TEST(ClipGrad, RefusesABoundThatIsNone) {
  Three three;
  for (const double bound : {-1.0, std::nan("")}) {
    EXPECT_EQ(test::error_of([&] { clip_grad_norm(three.parameters, bound); }).kind(),
              ErrorKind::usage);
    EXPECT_EQ(test::error_of([&] { clip_grad_value(three.parameters, bound); }).kind(),
              ErrorKind::usage);
  }
  EXPECT_EQ(three.gradients(), (std::vector<float>{3, 4, 12}));
}

}  // namespace
}  // namespace muster
