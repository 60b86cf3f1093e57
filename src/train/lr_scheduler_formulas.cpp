#include <muster/base/check.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/train/lr_scheduler_internal.h"

namespace muster {
namespace {

/// What a rate is computed from. The formulas are Python's, with the order of their operations:
/// most go on from the current rate, so that chained ones multiply.
struct Rate {
  size_t group;
  double current;
  double initial;
};

using Formula = std::function<double(int64_t step, const Rate& rate)>;

/// A scheduler without any memory but its step.
class FormulaSchedule : public Schedule {
 public:
  FormulaSchedule(torch::optim::Optimizer& optimizer, std::string name, Formula formula)
      : Schedule{optimizer, std::move(name)}, formula_{std::move(formula)} {}

  void begin() override { set(); }
  void step(std::optional<double> /*metric*/) override {
    go_to(now() + 1);
    set();
  }

 private:
  void set() {
    std::vector<double> next = current_rates();
    for (size_t i = 0; i < groups(); ++i) {
      next[i] = formula_(now(), {.group = i, .current = next[i], .initial = base()[i]});
    }
    set_rates(next);
  }

  Formula formula_;
};

std::unique_ptr<LrScheduler> make_formula(torch::optim::Optimizer& optimizer, std::string name,
                                          Formula formula) {
  return make_schedule<FormulaSchedule>(optimizer, std::move(name), std::move(formula));
}

void check_steps(std::string_view name, std::string_view option, int64_t value) {
  check(value >= 1, "{}: {} is {}; expected a number of steps, at least 1", name, option, value);
}

void check_finite(std::string_view name, std::string_view option, double value) {
  check(std::isfinite(value), "{}: {} is {}; expected a finite number", name, option, value);
}

/// 1 + cos(pi at / period).
double wave(int64_t at, int64_t period) {
  return 1 + std::cos(std::numbers::pi * static_cast<double>(at) / static_cast<double>(period));
}

}  // namespace

std::unique_ptr<LrScheduler> step_lr(torch::optim::Optimizer& optimizer,
                                     const StepLrOptions& options) {
  check_steps("step_lr", "step_size", options.step_size);
  check_finite("step_lr", "gamma", options.gamma);
  return make_formula(optimizer, "step_lr", [o = options](int64_t step, const Rate& rate) {
    const bool decays = step != 0 && step % o.step_size == 0;
    return decays ? rate.current * o.gamma : rate.current;
  });
}

std::unique_ptr<LrScheduler> multi_step_lr(torch::optim::Optimizer& optimizer,
                                           const MultiStepLrOptions& options) {
  check_finite("multi_step_lr", "gamma", options.gamma);
  for (const int64_t milestone : options.milestones) {
    check(milestone >= 0, "multi_step_lr: a milestone is {}; expected a step, from 0", milestone);
  }
  return make_formula(optimizer, "multi_step_lr", [o = options](int64_t step, const Rate& rate) {
    const auto times = std::count(o.milestones.begin(), o.milestones.end(), step);
    return times == 0 ? rate.current : rate.current * std::pow(o.gamma, times);
  });
}

std::unique_ptr<LrScheduler> exponential_lr(torch::optim::Optimizer& optimizer,
                                            const ExponentialLrOptions& options) {
  check(std::isfinite(options.gamma) && options.gamma > 0,
        "exponential_lr: gamma is {}; expected a factor above 0", options.gamma);
  return make_formula(optimizer, "exponential_lr",
                      [gamma = options.gamma](int64_t step, const Rate& rate) {
                        return step == 0 ? rate.current : rate.current * gamma;
                      });
}

std::unique_ptr<LrScheduler> polynomial_lr(torch::optim::Optimizer& optimizer,
                                           const PolynomialLrOptions& options) {
  check_steps("polynomial_lr", "total_iters", options.total_iters);
  check(std::isfinite(options.power) && options.power > 0,
        "polynomial_lr: power is {}; expected a number above 0", options.power);
  return make_formula(optimizer, "polynomial_lr", [o = options](int64_t step, const Rate& rate) {
    if (step == 0 || step > o.total_iters) {
      return rate.current;
    }
    const auto total = static_cast<double>(o.total_iters);
    const auto now = static_cast<double>(step);
    return rate.current * std::pow((1.0 - now / total) / (1.0 - (now - 1) / total), o.power);
  });
}

std::unique_ptr<LrScheduler> linear_lr(torch::optim::Optimizer& optimizer,
                                       const LinearLrOptions& options) {
  check(options.start_factor > 0 && options.start_factor <= 1,
        "linear_lr: start_factor is {}; expected above 0 and at most 1", options.start_factor);
  check(options.end_factor >= 0 && options.end_factor <= 1,
        "linear_lr: end_factor is {}; expected 0 to 1", options.end_factor);
  check_steps("linear_lr", "total_iters", options.total_iters);
  return make_formula(optimizer, "linear_lr", [o = options](int64_t step, const Rate& rate) {
    if (step == 0) {
      return rate.current * o.start_factor;
    }
    if (step > o.total_iters) {
      return rate.current;
    }
    const double change = o.end_factor - o.start_factor;
    return rate.current * (1.0 + change / (static_cast<double>(o.total_iters) * o.start_factor +
                                           static_cast<double>(step - 1) * change));
  });
}

std::unique_ptr<LrScheduler> constant_lr(torch::optim::Optimizer& optimizer,
                                         const ConstantLrOptions& options) {
  check(options.factor > 0 && options.factor <= 1,
        "constant_lr: factor is {}; expected above 0 and at most 1", options.factor);
  check_steps("constant_lr", "total_iters", options.total_iters);
  return make_formula(optimizer, "constant_lr", [o = options](int64_t step, const Rate& rate) {
    if (step == 0) {
      return rate.current * o.factor;
    }
    return step == o.total_iters ? rate.current * (1.0 / o.factor) : rate.current;
  });
}

std::unique_ptr<LrScheduler> cosine_annealing_lr(torch::optim::Optimizer& optimizer,
                                                 const CosineAnnealingLrOptions& options) {
  check_steps("cosine_annealing_lr", "t_max", options.t_max);
  check_finite("cosine_annealing_lr", "eta_min", options.eta_min);
  const auto formula = [o = options](int64_t step, const Rate& rate) {
    if (step == 0) {
      return rate.current;
    }
    if ((step - 1 - o.t_max) % (2 * o.t_max) == 0) {  // up from the lowest, where the ratio is 0/0
      const double first = 1 - std::cos(std::numbers::pi / static_cast<double>(o.t_max));
      return rate.current + (rate.initial - o.eta_min) * first / 2;
    }
    return wave(step, o.t_max) / wave(step - 1, o.t_max) * (rate.current - o.eta_min) + o.eta_min;
  };
  return make_formula(optimizer, "cosine_annealing_lr", formula);
}

std::unique_ptr<LrScheduler> cosine_annealing_warm_restarts(
    torch::optim::Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options) {
  check_steps("cosine_annealing_warm_restarts", "t_0", options.t_0);
  check_finite("cosine_annealing_warm_restarts", "eta_min", options.eta_min);
  check(options.t_mult >= 1 && options.t_mult <= 1'000'000,
        "cosine_annealing_warm_restarts: t_mult is {}; expected 1 to 1,000,000", options.t_mult);
  const auto formula = [o = options](int64_t step, const Rate& rate) {
    int64_t period = o.t_0;
    int64_t at = o.t_mult == 1 ? step % period : step;
    while (at >= period) {
      at -= period;
      period *= o.t_mult;
    }
    return o.eta_min + (rate.initial - o.eta_min) * wave(at, period) / 2;
  };
  return make_formula(optimizer, "cosine_annealing_warm_restarts", formula);
}

std::unique_ptr<LrScheduler> lambda_lr(torch::optim::Optimizer& optimizer,
                                       const LambdaLrOptions& options) {
  class LambdaSchedule : public FormulaSchedule {
   public:
    LambdaSchedule(torch::optim::Optimizer& optimizer, const LambdaLrOptions& options)
        : FormulaSchedule{optimizer, "lambda_lr",
                          [factors = options.factors](int64_t step, const Rate& rate) {
                            const auto& factor = factors[factors.size() == 1 ? 0 : rate.group];
                            return rate.initial * factor(step);
                          }} {
      const auto& factors = options.factors;
      check(factors.size() == 1 || factors.size() == groups(),
            "lambda_lr: factors holds {} functions; expected 1 for all groups, or {}, one for each",
            factors.size(), groups());
      for (const auto& factor : factors) {
        check(static_cast<bool>(factor), "lambda_lr: factors holds an empty function");
      }
    }
  };
  return make_schedule<LambdaSchedule>(optimizer, options);
}

}  // namespace muster
