#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/train/lr_scheduler.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <limits>
#include <map>

#include "tests/base/expect_error.h"

namespace muster {
namespace {

/// An optimizer that has rates and does nothing: libtorch's own cost 20 s to include.
class Idle : public torch::optim::Optimizer {
 public:
  struct Options : torch::optim::OptimizerOptions {
    explicit Options(double rate) : lr{rate} {}
    [[nodiscard]] std::unique_ptr<OptimizerOptions> clone() const override {
      return std::make_unique<Options>(*this);
    }
    [[nodiscard]] double get_lr() const override { return lr; }
    void set_lr(const double rate) override { lr = rate; }
    double lr;
  };

  explicit Idle(const std::vector<double>& rates = {0.1, 0.02, 0.5})
      : Optimizer{std::vector<torch::optim::OptimizerParamGroup>{},
                  std::make_unique<Options>(0.0)} {
    for (const double rate : rates) {
      param_groups().emplace_back(std::vector<at::Tensor>{at::zeros({1})},
                                  std::make_unique<Options>(rate));
    }
  }
  at::Tensor step(LossClosure /*closure*/) override { return {}; }
};

using Rates = std::vector<double>;
using Made = std::unique_ptr<LrScheduler>;
using Make = std::function<Made(torch::optim::Optimizer&)>;

const OneCycleLrOptions cycle{.max_lr = {0.4}, .total_steps = 60, .cycle_momentum = false};

Made sequence(torch::optim::Optimizer& o) {
  return sequential_lr(o, {.schedulers = {linear_lr(o, {}), cosine_annealing_lr(o, {.t_max = 15}),
                                          one_cycle_lr(o, cycle)},
                           .milestones = {5, 16}});
}

Made chain(torch::optim::Optimizer& o) {
  return chained_scheduler(o, {.schedulers = {constant_lr(o, {.total_iters = 20}), sequence(o)}});
}

std::map<std::string, Make> every() {
  return {
      {"step", [](auto& o) { return step_lr(o, {.step_size = 5}); }},
      {"multi_step",
       [](auto& o) {
         return multi_step_lr(o, {.milestones = {3, 19}});
       }},
      {"exponential", [](auto& o) { return exponential_lr(o, {.gamma = 0.9}); }},
      {"polynomial", [](auto& o) { return polynomial_lr(o, {.total_iters = 30}); }},
      {"linear", [](auto& o) { return linear_lr(o, {.total_iters = 30}); }},
      {"constant", [](auto& o) { return constant_lr(o, {.total_iters = 20}); }},
      {"cosine", [](auto& o) { return cosine_annealing_lr(o, {.t_max = 12}); }},
      {"restarts",
       [](auto& o) { return cosine_annealing_warm_restarts(o, {.t_0 = 4, .t_mult = 2}); }},
      {"one_cycle", [](auto& o) { return one_cycle_lr(o, cycle); }},
      {"lambda",
       [](auto& o) {
         return lambda_lr(o, {.factors = {[](int64_t step) { return 1.0 / double(step + 1); }}});
       }},
      {"plateau", [](auto& o) { return reduce_lr_on_plateau(o, {.patience = 2, .cooldown = 2}); }},
      {"sequence", sequence},
      {"chain", chain},
  };
}

void step(LrScheduler& scheduler, int at) {
  if (scheduler.needs_metric()) {
    scheduler.step(at < 9 ? 1.0 / at : 0.2);
  } else {
    scheduler.step();
  }
}

TEST(LrScheduler, GoesOnFromASavedStateExactly) {
  for (const auto& [name, make] : every()) {
    Idle first;
    const auto whole = make(first);
    for (int at = 1; at <= 17; ++at) {
      step(*whole, at);
    }
    const auto state = from_bytes(to_bytes(whole->state()));

    Idle second;
    const auto resumed = make(second);
    resumed->load_state(state);
    EXPECT_TRUE(identical(resumed->state(), state)) << name;
    for (int at = 18; at <= 50; ++at) {
      EXPECT_EQ(resumed->rates(), whole->rates()) << name << " before step " << at;
      step(*whole, at);
      step(*resumed, at);
    }
  }
}

TEST(LrScheduler, GoesOnFromTheSavedInitialRates) {
  Idle first;
  const auto whole = lambda_lr(first, {.factors = {[](int64_t) { return 1.0; }}});
  Idle second{{7.0, 7.0, 7.0}};
  const auto resumed = lambda_lr(second, {.factors = {[](int64_t) { return 1.0; }}});
  resumed->load_state(whole->state());
  resumed->step();
  EXPECT_EQ(resumed->rates(), (Rates{0.1, 0.02, 0.5}));
}

TEST(LrScheduler, RefusesAStateThatIsNotItsOwn) {
  Idle optimizer;
  const auto scheduler = step_lr(optimizer, {.step_size = 2});
  const auto good = scheduler->state();
  const auto refuses = [&](const Value& state, const std::string& part) {
    const auto error = test::error_of([&] { scheduler->load_state(state); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << part;
    EXPECT_TRUE(test::contains(error.what(), part)) << error.what();
  };
  Idle other;
  refuses(exponential_lr(other, {.gamma = 0.5})->state(), "exponential_lr");
  Idle single{{0.1}};
  refuses(step_lr(single, {.step_size = 2})->state(), "has 1 items where this one has 3");
  refuses(Value{}, "lacks 'name'");
  for (const auto* key : {"name", "step", "initial_rates", "rates"}) {
    auto state = good;
    *state.find(key) = true;
    refuses(state, key == std::string{"name"} ? "unknown" : key);
  }
  auto state = good;
  state["step"] = -1;
  refuses(state, "-1");
  EXPECT_TRUE(identical(scheduler->state(), good));
}

TEST(LrScheduler, RefusesOptionsThatMakeNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::string, Make>> wrong{
      {"step_size is 0", [](auto& o) { return step_lr(o, {}); }},
      {"gamma is nan", [=](auto& o) { return step_lr(o, {.step_size = 1, .gamma = nan}); }},
      {"milestone is -1", [](auto& o) { return multi_step_lr(o, {.milestones = {-1}}); }},
      {"gamma is 0", [](auto& o) { return exponential_lr(o, {}); }},
      {"power is 0", [](auto& o) { return polynomial_lr(o, {.power = 0.0}); }},
      {"total_iters is 0", [](auto& o) { return polynomial_lr(o, {.total_iters = 0}); }},
      {"start_factor is 0", [](auto& o) { return linear_lr(o, {.start_factor = 0.0}); }},
      {"end_factor is 1.5", [](auto& o) { return linear_lr(o, {.end_factor = 1.5}); }},
      {"factor is 0", [](auto& o) { return constant_lr(o, {.factor = 0.0}); }},
      {"t_max is 0", [](auto& o) { return cosine_annealing_lr(o, {}); }},
      {"t_0 is 0", [](auto& o) { return cosine_annealing_warm_restarts(o, {}); }},
      {"t_mult is 0",
       [](auto& o) { return cosine_annealing_warm_restarts(o, {.t_0 = 1, .t_mult = 0}); }},
      {"total_steps is 0", [](auto& o) { return one_cycle_lr(o, {.max_lr = {1.0}}); }},
      {"no momentum", [](auto& o) { return one_cycle_lr(o, {.max_lr = {1.0}, .total_steps = 9}); }},
      {"max_lr holds 0",
       [](auto& o) { return one_cycle_lr(o, {.total_steps = 9, .cycle_momentum = false}); }},
      {"max_lr holds 2",
       [](auto& o) {
         return one_cycle_lr(o, {.max_lr = {1.0, 2.0}, .total_steps = 9, .cycle_momentum = false});
       }},
      {"a phase has no steps",
       [](auto& o) {
         return one_cycle_lr(
             o, {.max_lr = {1.0}, .total_steps = 10, .pct_start = 0.1, .cycle_momentum = false});
       }},
      {"factors holds 0", [](auto& o) { return lambda_lr(o, {}); }},
      {"empty function", [](auto& o) { return lambda_lr(o, {.factors = {nullptr}}); }},
      {"rate of group 0 is nan",
       [=](auto& o) { return lambda_lr(o, {.factors = {[=](int64_t) { return nan; }}}); }},
      {"factor is 1", [](auto& o) { return reduce_lr_on_plateau(o, {.factor = 1.0}); }},
      {"min_lr holds 2",
       [](auto& o) {
         return reduce_lr_on_plateau(o, {.min_lr = {0.0, 0.1}});
       }},
  };
  for (const auto& [part, make] : wrong) {
    Idle optimizer;
    const auto error = test::error_of([&, &make = make] { make(optimizer); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << part;
    EXPECT_TRUE(test::contains(error.what(), part)) << part << ": " << error.what();
  }
}

TEST(LrScheduler, RefusesPartsThatDoNotGoTogether) {
  Idle other;
  const std::vector<std::pair<std::string, Make>> wrong{
      {"at least one", [](auto& o) { return chained_scheduler(o, {}); }},
      {"is null", [](auto& o) { return chained_scheduler(o, {.schedulers = {nullptr}}); }},
      {"need 1 milestones",
       [](auto& o) {
         return sequential_lr(o, {.schedulers = {linear_lr(o, {}), linear_lr(o, {})}});
       }},
      {"must not fall",
       [](auto& o) {
         return sequential_lr(o,
                              {.schedulers = {linear_lr(o, {}), linear_lr(o, {}), linear_lr(o, {})},
                               .milestones = {5, 4}});
       }},
      {"reduce_lr_on_plateau, which cannot",
       [](auto& o) { return chained_scheduler(o, {.schedulers = {reduce_lr_on_plateau(o, {})}}); }},
      {"sequential_lr, which cannot",
       [](auto& o) { return sequential_lr(o, {.schedulers = {sequence(o)}}); }},
      {"another optimizer",
       [&](auto& o) { return chained_scheduler(o, {.schedulers = {linear_lr(other, {})}}); }},
      {"in the order of the list",
       [](auto& o) {
         const std::shared_ptr<LrScheduler> first = linear_lr(o, {});
         const std::shared_ptr<LrScheduler> second = exponential_lr(o, {.gamma = 0.5});
         return chained_scheduler(o, {.schedulers = {second, first}});
       }},
      {"in the order of the list",
       [](auto& o) {
         const std::shared_ptr<LrScheduler> twice = exponential_lr(o, {.gamma = 0.5});
         return chained_scheduler(o, {.schedulers = {twice, twice}});
       }},
      {"make them right before",
       [](auto& o) {
         const std::shared_ptr<LrScheduler> part = exponential_lr(o, {.gamma = 0.5});
         part->step();
         return chained_scheduler(o, {.schedulers = {part}});
       }},
  };
  for (const auto& [part, make] : wrong) {
    Idle optimizer;
    const auto error = test::error_of([&, &make = make] { make(optimizer); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << part;
    EXPECT_TRUE(test::contains(error.what(), part)) << part << ": " << error.what();
  }
}

TEST(LrScheduler, PlateauNeedsAMetricAndTakesNanAsNoBetter) {
  Idle optimizer;
  const auto scheduler = reduce_lr_on_plateau(optimizer, {.factor = 0.5, .patience = 0});
  EXPECT_TRUE(scheduler->needs_metric());
  EXPECT_EQ(test::error_of([&] { scheduler->step(); }).kind(), ErrorKind::usage);
  scheduler->step(1.0);
  EXPECT_EQ(scheduler->rates(), (Rates{0.1, 0.02, 0.5}));
  scheduler->step(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(scheduler->rates(), (Rates{0.05, 0.01, 0.25}));
}

TEST(LrScheduler, OneCycleEndsAtItsTotalSteps) {
  Idle optimizer;
  const auto scheduler =
      one_cycle_lr(optimizer, {.max_lr = {0.4}, .total_steps = 9, .cycle_momentum = false});
  for (int at = 1; at <= 9; ++at) {
    scheduler->step();
  }
  const auto last = scheduler->rates();
  EXPECT_EQ(test::error_of([&] { scheduler->step(); }).kind(), ErrorKind::usage);
  EXPECT_EQ(scheduler->rates(), last);
}

TEST(LrScheduler, SaysWhenTheOptimizersGroupsChanged) {
  Idle optimizer;
  const auto scheduler = exponential_lr(optimizer, {.gamma = 0.5});
  optimizer.param_groups().pop_back();
  const auto error = test::error_of([&] { scheduler->step(); });
  EXPECT_TRUE(test::contains(error.what(), "has 2 parameter groups now and had 3")) << error.what();
}

}  // namespace
}  // namespace muster
