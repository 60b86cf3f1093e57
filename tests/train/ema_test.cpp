#include "fake_training.h"

#include "tests/base/expect_error.h"

#include <muster/train/ema.h>

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

using test::FakeRun;
using test::FakeTraining;

/// A module of one weight, one running mean and one counter, and a training that sets them.
struct OneWeight {
  OneWeight() {
    weight.requires_grad_(true);
    training.parameters_ = {{"weight", weight}};
    training.buffers_ = {{"mean", mean}, {"count", count}};
  }

  void set(double value) {
    const c10::AutoGradMode no_grad{false};
    weight.fill_(value);
    mean.fill_(-value);
    count.add_(1);
  }
  /// One step that ends at `value`.
  void step(FakeRun& run, double value) {
    set(value);
    run.steps(1);
  }
  [[nodiscard]] double now() const { return weight[0].item<double>(); }
  /// The model of a checkpoint.
  [[nodiscard]] NamedTensors saved(const EMA& ema) const {
    NamedTensors model{{"weight", weight}, {"mean", mean}, {"count", count}};
    ema.on_save(model);
    return model;
  }

  at::Tensor weight = at::full({2}, 1.0, at::kDouble);
  at::Tensor mean = at::full({1}, 0.0, at::kFloat);
  at::Tensor count = at::full({}, 0, at::kLong);
  FakeTraining training{};
};

double number(const at::Tensor& tensor) { return tensor.reshape({-1})[0].item<double>(); }

TEST(EMA, AveragesFromTheTensorsOfTheFirstUpdateOn) {
  OneWeight model;
  EMA ema{{.decay = 0.75}};
  FakeRun run{model.training, ema};
  run.start();
  EXPECT_TRUE(model.saved(ema)[0].second.is_same(model.weight)) << "there is no average yet";
  model.step(run, 2);
  EXPECT_EQ(number(model.saved(ema)[0].second), 2);
  model.step(run, 4);
  model.step(run, 8);
  const double average = 0.75 * (0.75 * 2 + 0.25 * 4) + 0.25 * 8;
  const NamedTensors saved = model.saved(ema);
  EXPECT_DOUBLE_EQ(number(saved[0].second), average);
  EXPECT_FLOAT_EQ(static_cast<float>(number(saved[1].second)), static_cast<float>(-average));
  EXPECT_EQ(number(saved[2].second), 3) << "a counter is copied";
  EXPECT_EQ(model.now(), 8);
  EXPECT_EQ(ema.updates(), 3);
}

TEST(EMA, GivesTheAverageToValidationsAndTheTrainedWeightsBack) {
  OneWeight model;
  EMA ema{{.decay = 0.5}};
  FakeRun run{model.training, ema};
  run.start();
  run.validation_start();
  EXPECT_EQ(model.now(), 1) << "no average before the first step";
  run.validation_end({});
  EXPECT_EQ(model.training.broadcasts_, 0);
  model.step(run, 2);
  model.step(run, 4);
  run.validation_start();
  EXPECT_EQ(model.now(), 3);
  EXPECT_EQ(number(model.mean), -3);
  EXPECT_EQ(model.training.broadcasts_, 1);
  EXPECT_EQ(number(model.saved(ema)[0].second), 3) << "a checkpoint within the validation";
  EXPECT_EQ(number(ema.state().find("trained")->find("weight")->as_tensor()), 4);
  run.validation_end({});
  EXPECT_EQ(model.now(), 4);
  EXPECT_EQ(number(model.mean), -4);
  EXPECT_EQ(number(model.saved(ema)[0].second), 3);
  EXPECT_EQ(number(ema.state().find("trained")->find("weight")->as_tensor()), 4);
}

TEST(EMA, LeavesTheAverageInTheModuleAtTheEnd) {
  OneWeight model;
  EMA ema{{.decay = 0.5}};
  FakeRun run{model.training, ema};
  run.start();
  model.step(run, 2);
  model.step(run, 4);
  run.end();
  EXPECT_EQ(model.now(), 3);
  EXPECT_EQ(number(ema.state().find("trained")->find("weight")->as_tensor()), 4);
  EXPECT_TRUE(model.weight.requires_grad() && model.weight.is_leaf());
}

TEST(EMA, StartsAtItsStepAndUpdatesAsOftenAsItIsTold) {
  OneWeight model;
  EMA ema{{.decay = 0.5, .update_every_n_steps = 2, .update_starting_at_step = 2}};
  FakeRun run{model.training, ema};
  run.start();
  for (const double value : {1, 2, 3, 4, 5, 6}) {  // steps 0 to 5: after 2 and 4
    model.step(run, value);
  }
  EXPECT_EQ(ema.updates(), 2);
  EXPECT_EQ(number(model.saved(ema)[0].second), 4);
}

TEST(EMA, LeavesBuffersAloneWhenToldTo) {
  OneWeight model;
  EMA ema{{.decay = 0.5, .use_buffers = false}};
  FakeRun run{model.training, ema};
  run.start();
  model.step(run, 2);
  model.step(run, 4);
  EXPECT_TRUE(model.saved(ema)[1].second.is_same(model.mean));
  run.end();
  EXPECT_EQ(model.now(), 3);
  EXPECT_EQ(number(model.mean), -4);
  EXPECT_EQ(model.training.broadcasts_, 0);
}

TEST(EMA, GoesOnAfterAResumeAsIfNothingHadBeen) {
  const EMAOptions options{.decay = 0.75};
  const auto values = {1.5, 3.0, 7.0, 2.0};
  OneWeight whole;
  EMA straight{options};
  FakeRun run{whole.training, straight};
  run.start();
  Value state;
  NamedTensors saved;
  int64_t step = 0;
  for (const double value : values) {
    whole.step(run, value);
    if (++step == 2) {
      state = from_bytes(to_bytes(straight.state()));
      for (const auto& [name, tensor] : whole.saved(straight)) {
        saved.emplace_back(name, tensor.detach().clone());
      }
    }
  }

  OneWeight second;
  EMA resumed{options};
  resumed.load_state(state);
  {
    const c10::AutoGradMode no_grad{false};
    second.weight.copy_(saved[0].second);
    second.mean.copy_(saved[1].second);
    second.count.copy_(saved[2].second);
  }
  FakeRun rest{second.training, resumed};
  rest.at(0, 2).start();
  EXPECT_EQ(second.now(), 3) << "the trained weight";
  EXPECT_EQ(number(second.mean), -3);
  second.step(rest, 7);
  second.step(rest, 2);
  EXPECT_EQ(resumed.updates(), straight.updates());
  const auto left = whole.saved(straight);
  const auto right = second.saved(resumed);
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(identical(left[i].second.detach(), right[i].second.detach())) << left[i].first;
  }
}

TEST(EMA, MovesATensorOfTwoNamesOnce) {
  OneWeight model;
  model.training.parameters_.emplace_back("tied", model.weight);
  EMA ema{{.decay = 0.5}};
  FakeRun run{model.training, ema};
  run.start();
  model.step(run, 2);
  model.step(run, 4);
  run.validation_start();
  EXPECT_EQ(model.now(), 3);
  run.validation_end({});
  EXPECT_EQ(model.now(), 4);
}

TEST(EMA, RefusesTheStateOfAnotherModule) {
  OneWeight model;
  EMA ema;
  FakeRun run{model.training, ema};
  run.start();
  model.step(run, 2);
  Value state = ema.state();
  EMA other;
  other.load_state(state);
  model.training.parameters_ = {{"bias", model.weight}};
  FakeRun rest{model.training, other};
  EXPECT_EQ(test::error_of([&] { rest.start(); }).kind(), ErrorKind::data);
}

TEST(EMA, RefusesOptionsOutOfRange) {
  for (const EMAOptions& options :
       {EMAOptions{.decay = 1.5}, EMAOptions{.decay = std::nan("")},
        EMAOptions{.update_every_n_steps = 0}, EMAOptions{.update_starting_at_step = -1}}) {
    EXPECT_EQ(test::error_of([&] { EMA{options}; }).kind(), ErrorKind::usage);
  }
}

}  // namespace
}  // namespace muster
