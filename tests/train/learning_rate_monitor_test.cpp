#include "fake_training.h"

#include <muster/train/learning_rate_monitor.h>

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/optim/optimizer.h>

namespace muster {
namespace {

using test::FakeRun;
using test::FakeTraining;
using Interval = LearningRateMonitorOptions::Interval;

struct RateAlone : torch::optim::OptimizerOptions {
  explicit RateAlone(double rate) : lr{rate} {}
  [[nodiscard]] std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<RateAlone>(*this);
  }
  [[nodiscard]] double get_lr() const override { return lr; }
  void set_lr(const double rate) override { lr = rate; }
  double lr;
};

/// Has rates and does nothing: libtorch's own cost 20 s to include.
class Idle : public torch::optim::Optimizer {
 public:
  explicit Idle(const std::vector<double>& rates)
      : Optimizer{std::vector<torch::optim::OptimizerParamGroup>{},
                  std::make_unique<RateAlone>(0.0)} {
    for (const double rate : rates) {
      param_groups().emplace_back(std::vector<at::Tensor>{at::zeros({1})},
                                  std::make_unique<RateAlone>(rate));
    }
  }
  at::Tensor step(LossClosure /*closure*/) override { return {}; }
};

using Rows = std::vector<std::pair<std::string, double>>;

/// What one epoch of two steps logs, of which the second has a row; the rates halve in between.
Rows logged(const LearningRateMonitorOptions& options, const std::vector<double>& rates) {
  Idle optimizer{rates};
  FakeTraining training;
  training.optimizer_ = &optimizer;
  training.logging_step_ = false;
  LearningRateMonitor callback{options};
  FakeRun run{training, callback};
  run.start();
  run.epoch_start();
  run.steps(1);
  for (auto& group : optimizer.param_groups()) {
    group.options().set_lr(group.options().get_lr() / 2);
  }
  training.logging_step_ = true;
  run.steps(1);
  run.validate({{"val/loss", 1}});
  run.epoch_end();
  run.end();
  return training.logged_;
}

TEST(LearningRateMonitor, LogsTheRateThatTheStepOfARowUses) {
  EXPECT_EQ(logged({.logging_interval = Interval::step}, {0.5}), (Rows{{"lr-Idle", 0.25}}));
}

TEST(LearningRateMonitor, LogsTheRateAtTheStartOfAnEpoch) {
  EXPECT_EQ(logged({.logging_interval = Interval::epoch}, {0.5}), (Rows{{"lr-Idle", 0.5}}));
  EXPECT_EQ(logged({}, {0.5}), (Rows{{"lr-Idle", 0.5}, {"lr-Idle", 0.25}}));
}

TEST(LearningRateMonitor, NumbersParameterGroups) {
  EXPECT_EQ(logged({.logging_interval = Interval::epoch, .log_momentum = true}, {0.5, 0.125}),
            (Rows{{"lr-Idle/pg1", 0.5},
                  {"lr-Idle/pg1-momentum", 0.0},
                  {"lr-Idle/pg2", 0.125},
                  {"lr-Idle/pg2-momentum", 0.0}}));
}

}  // namespace
}  // namespace muster
