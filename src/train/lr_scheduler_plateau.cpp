#include <muster/base/check.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/train/lr_scheduler_internal.h"

namespace muster {
namespace {

using Options = ReduceLrOnPlateauOptions;

class Plateau : public Schedule {
 public:
  Plateau(torch::optim::Optimizer& optimizer, const Options& options)
      : Schedule{optimizer, "reduce_lr_on_plateau"},
        options_{options},
        lowest_{per_group(options.min_lr, "min_lr")} {
    check(options.factor >= 0 && options.factor < 1,
          "reduce_lr_on_plateau: factor is {}; expected at least 0 and below 1", options.factor);
    check(options.patience >= 0 && options.cooldown >= 0,
          "reduce_lr_on_plateau: patience is {} and cooldown {}; expected numbers of steps",
          options.patience, options.cooldown);
    check(std::isfinite(options.threshold) && std::isfinite(options.eps),
          "reduce_lr_on_plateau: threshold is {} and eps {}; expected finite numbers",
          options.threshold, options.eps);
  }

  [[nodiscard]] bool needs_metric() const override { return true; }
  [[nodiscard]] bool may_be_part(bool /*of_sequence*/) const override { return false; }

  void begin() override {
    const double infinity = std::numeric_limits<double>::infinity();
    best_ = options_.mode == Options::Mode::min ? infinity : -infinity;
    bad_steps_ = 0;
    cooldown_left_ = 0;
  }

  void step(std::optional<double> metric) override {
    check(metric.has_value(), "reduce_lr_on_plateau: step needs the metric that it watches");
    go_to(now() + 1);
    const bool better = is_better(*metric);
    best_ = better ? *metric : best_;
    bad_steps_ = better ? 0 : bad_steps_ + 1;
    if (cooldown_left_ > 0) {
      --cooldown_left_;
      bad_steps_ = 0;
    }
    if (bad_steps_ > options_.patience) {
      reduce();
      cooldown_left_ = options_.cooldown;
      bad_steps_ = 0;
    }
  }

 protected:
  void save(Value& state) const override {
    state["best"] = best_;
    state["bad_steps"] = bad_steps_;
    state["cooldown_left"] = cooldown_left_;
  }
  void load(const Value& state) override {
    best_ = double_in(state, "best");
    bad_steps_ = int_in(state, "bad_steps");
    cooldown_left_ = int_in(state, "cooldown_left");
  }

 private:
  [[nodiscard]] bool is_better(double metric) const {
    const bool lower = options_.mode == Options::Mode::min;
    const double sign = lower ? -1.0 : 1.0;
    const double bar = options_.threshold_mode == Options::ThresholdMode::rel
                           ? best_ * (1.0 + sign * options_.threshold)
                           : best_ + sign * options_.threshold;
    return lower ? metric < bar : metric > bar;
  }

  void reduce() {
    std::vector<double> next = current_rates();
    for (size_t i = 0; i < groups(); ++i) {
      const double reduced = std::max(next[i] * options_.factor, lowest_[i]);
      next[i] = next[i] - reduced > options_.eps ? reduced : next[i];
    }
    set_rates(next);
  }

  Options options_;
  std::vector<double> lowest_;
  double best_ = 0.0;
  int64_t bad_steps_ = 0;
  int64_t cooldown_left_ = 0;
};

}  // namespace

std::unique_ptr<LrScheduler> reduce_lr_on_plateau(torch::optim::Optimizer& optimizer,
                                                  const ReduceLrOnPlateauOptions& options) {
  return make_schedule<Plateau>(optimizer, options);
}

}  // namespace muster
