#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <muster/train/precision.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/base/expect_error.h"

namespace muster {
namespace {

constexpr auto infinity = std::numeric_limits<double>::infinity();
const at::Device cpu{at::kCPU};

/// The type in which a product of float32 matrices is computed now.
at::ScalarType type_of_product() {
  return at::matmul(at::ones({2, 2}), at::ones({2, 2})).scalar_type();
}

at::Tensor with_gradient(const at::Tensor& gradient) {
  auto parameter = at::zeros(gradient.sizes(), gradient.options()).requires_grad_();
  parameter.mutable_grad() = gradient;
  return parameter;
}

TEST(Precision, IsReadByNameAndByLightningsShortForms) {
  const auto read = [](const Value& value) { return from_value<Precision>(value); };
  for (const auto& [name, precision] : enum_names(Precision{})) {
    EXPECT_EQ(read(name), precision);
    EXPECT_EQ(to_value(precision).as_string(), name);
  }
  EXPECT_EQ(read(32), Precision::f32_true);
  EXPECT_EQ(read("64"), Precision::f64_true);
  EXPECT_EQ(read(16), Precision::f16_mixed);
  EXPECT_EQ(read("bf16"), Precision::bf16_mixed);
  for (const Value& wrong : {Value{8}, Value{32.0}, Value{"32-mixed"}, Value{""}, Value{}}) {
    const auto error = test::error_of([&] { read(wrong); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_TRUE(test::contains(error.what(), "expected 32-true, 64-true, bf16-mixed or 16-mixed"))
        << error.what();
  }
}

TEST(AutocastGuard, ComputesInTheLowerTypeWhileItLives) {
  {
    const AutocastGuard guard{Precision::bf16_mixed, cpu};
    EXPECT_EQ(type_of_product(), at::kBFloat16);
  }
  EXPECT_EQ(type_of_product(), at::kFloat);
  {
    const AutocastGuard guard{Precision::f16_mixed, cpu};
    EXPECT_EQ(type_of_product(), at::kHalf);
  }
  EXPECT_EQ(type_of_product(), at::kFloat);
  for (const auto precision : {Precision::f32_true, Precision::f64_true}) {
    const AutocastGuard guard{precision, cpu};
    EXPECT_EQ(type_of_product(), at::kFloat);
  }
}

TEST(AutocastGuard, GivesBackWhatWasSetBeforeAlsoAfterAnException) {
  const AutocastGuard outer{Precision::f16_mixed, cpu};
  {
    const AutocastGuard inner{Precision::bf16_mixed, cpu};
    EXPECT_EQ(type_of_product(), at::kBFloat16);
  }
  EXPECT_EQ(type_of_product(), at::kHalf);
  try {
    const AutocastGuard inner{Precision::bf16_mixed, cpu};
    throw std::runtime_error{"a step fails"};
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(type_of_product(), at::kHalf);
}

TEST(AutocastGuard, ForgetsConvertedWeightsAtItsEnd) {
  const auto weight = at::ones({1, 1}).requires_grad_();
  const auto output = [&] {
    const AutocastGuard guard{Precision::bf16_mixed, cpu};
    return at::linear(at::ones({1, 1}), weight).item<float>();
  };
  EXPECT_EQ(output(), 1.0F);
  {
    const c10::AutoGradMode without_gradients{false};
    weight.fill_(3.0);
  }
  EXPECT_EQ(output(), 3.0F);
}

TEST(AutocastGuard, IsForTheCpuAndCudaAlone) {
  const auto error = test::error_of([] {
    const AutocastGuard guard{Precision::bf16_mixed, at::Device{at::kMeta}};
  });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_TRUE(test::contains(error.what(), "bf16-mixed")) << error.what();
  const AutocastGuard nothing_to_do{Precision::f32_true, at::Device{at::kMeta}};
  EXPECT_EQ(type_of_product(), at::kFloat);
}

TEST(GradScaler, HalvesAtAnInfiniteGradientAndDoublesAfterGoodSteps) {
  GradScaler scaler{{.init_scale = 8.0, .growth_interval = 3}};
  std::vector<double> factors;
  for (const bool found : {false, false, true, false, false, false, false, false, true, true}) {
    scaler.update(found);
    factors.push_back(scaler.factor());
  }
  EXPECT_EQ(factors, (std::vector<double>{8, 8, 4, 4, 4, 8, 8, 8, 4, 2}));
  EXPECT_EQ(GradScaler{}.factor(), 65536.0);
}

TEST(GradScaler, StaysAtTheHighestFactorThatIsFinite) {
  GradScaler scaler{{.init_scale = 0x1p127, .growth_interval = 1}};
  scaler.update(false);
  EXPECT_EQ(scaler.factor(), 0x1p127);
}

TEST(GradScaler, TurnsALossOfFloat16IntoOneThatCanHoldTheFactor) {
  const GradScaler scaler;
  const auto scaled = scaler.scale(at::full({}, 2.0, at::kHalf));
  EXPECT_EQ(scaled.scalar_type(), at::kFloat);
  EXPECT_EQ(scaled.item<float>(), 131072.0F);
  EXPECT_EQ(scaler.scale(at::full({}, 2.0, at::kDouble)).scalar_type(), at::kDouble);
}

TEST(GradScaler, DividesGradientsOfEveryTypeAndFindsInfinity) {
  const GradScaler scaler{{.init_scale = 4.0}};
  const auto single = with_gradient(at::full({3}, 8.0F));
  const auto wide = with_gradient(at::full({2}, 2.0, at::kDouble));
  const std::vector<at::Tensor> parameters{at::zeros({5}).requires_grad_(), single, wide};
  EXPECT_FALSE(scaler.unscale(parameters));
  EXPECT_EQ(single.grad().sum().item<float>(), 6.0F);
  EXPECT_EQ(wide.grad().sum().item<double>(), 1.0);
  EXPECT_FALSE(scaler.unscale({}));
  for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
    for (const auto& parameter : {single, wide}) {
      parameter.grad()[1] = bad;
      EXPECT_TRUE(scaler.unscale(parameters)) << bad;
      parameter.grad().zero_();
      EXPECT_FALSE(scaler.unscale(parameters));
    }
  }
}

TEST(GradScaler, RefusesGradientsOfFloat16AndOptionsOutOfRange) {
  const std::vector<at::Tensor> half{with_gradient(at::ones({1}, at::kHalf))};
  const auto error = test::error_of([&] { static_cast<void>(GradScaler{}.unscale(half)); });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  const auto refused = [](const GradScalerOptions& options) {
    return test::error_of([&] { GradScaler{options}; }).kind() == ErrorKind::usage;
  };
  EXPECT_TRUE(refused({.init_scale = 0.0}));
  EXPECT_TRUE(refused({.init_scale = 1e39}));
  EXPECT_TRUE(refused({.init_scale = NAN}));
  EXPECT_TRUE(refused({.growth_factor = 1.0}));
  EXPECT_TRUE(refused({.backoff_factor = 1.0}));
  EXPECT_TRUE(refused({.backoff_factor = 0.0}));
  EXPECT_TRUE(refused({.growth_interval = 0}));
}

TEST(GradScaler, GoesOnFromItsState) {
  const GradScalerOptions options{.init_scale = 8.0, .growth_interval = 3};
  GradScaler straight{options};
  for (const bool found : {true, false, false}) straight.update(found);
  GradScaler resumed{options};
  resumed.load_state(straight.state());
  EXPECT_TRUE(identical(resumed.state(), straight.state()));
  resumed.update(false);
  EXPECT_EQ(resumed.factor(), 8.0);
  for (const Value& wrong :
       {Value{}, Value{3}, Value{Value::Dict{}}, Value{Value::Dict{{"scale", 2.0}}},
        Value{Value::Dict{{"scale", NAN}, {"growth_tracker", 1}}},
        Value{Value::Dict{{"scale", 2.0}, {"growth_tracker", -1}}},
        Value{Value::Dict{{"scale", "2"}, {"growth_tracker", 1}}}}) {
    EXPECT_EQ(test::error_of([&] { resumed.load_state(wrong); }).kind(), ErrorKind::data);
  }
  EXPECT_EQ(resumed.factor(), 8.0);
}

}  // namespace
}  // namespace muster
