#include <muster/base/check.h>

#include <cmath>
#include <numbers>

#include "src/train/lr_scheduler_internal.h"
#include "src/train/momentum_internal.h"

namespace muster {
namespace {

class OneCycle : public Schedule {
 public:
  OneCycle(torch::optim::Optimizer& optimizer, const OneCycleLrOptions& options)
      : Schedule{optimizer, "one_cycle_lr"}, options_{options} {
    check(options.total_steps >= 1, "one_cycle_lr: total_steps is {}; expected at least 1",
          options.total_steps);
    check(options.pct_start >= 0 && options.pct_start <= 1,
          "one_cycle_lr: pct_start is {}; expected 0 to 1", options.pct_start);
    check(options.div_factor > 0 && options.final_div_factor > 0,
          "one_cycle_lr: div_factor is {} and final_div_factor {}; expected numbers above 0",
          options.div_factor, options.final_div_factor);
    check(!options.cycle_momentum || has_momentum(optimizer),
          "one_cycle_lr: this optimizer has no momentum and no betas: set cycle_momentum to false");
    max_rates_ = per_group(options.max_lr, "max_lr");
    low_momenta_ = per_group(options.base_momentum, "base_momentum");
    high_momenta_ = per_group(options.max_momentum, "max_momentum");
    for (const double rate : max_rates_) {
      first_rates_.push_back(rate / options.div_factor);
      last_rates_.push_back(first_rates_.back() / options.final_div_factor);
    }
    make_phases();
  }

  void start(std::vector<double>& initial) override {
    initial = first_rates_;
    Schedule::start(initial);
  }
  void begin() override { set(); }
  void step(std::optional<double> /*metric*/) override {
    check(now() < options_.total_steps,
          "one_cycle_lr: step {} is beyond total_steps: give it as many as the training has",
          now() + 1);
    go_to(now() + 1);
    set();
  }
  [[nodiscard]] bool cycles_momentum() const override { return options_.cycle_momentum; }

 private:
  using Numbers = std::vector<double>;
  struct Phase {
    double end;
    const Numbers* first_rates;
    const Numbers* last_rates;
    const Numbers* first_momenta;
    const Numbers* last_momenta;
  };

  void make_phases() {
    const auto total = static_cast<double>(options_.total_steps);
    const double up = options_.pct_start * total - 1;
    phases_ = {{up, &first_rates_, &max_rates_, &high_momenta_, &low_momenta_}};
    if (options_.three_phase) {
      const double down = 2 * options_.pct_start * total - 2;
      phases_.push_back({down, &max_rates_, &first_rates_, &low_momenta_, &high_momenta_});
      phases_.push_back({total - 1, &first_rates_, &last_rates_, &high_momenta_, &high_momenta_});
    } else {
      phases_.push_back({total - 1, &max_rates_, &last_rates_, &low_momenta_, &high_momenta_});
    }
  }

  void set() {
    const auto at = static_cast<double>(now());
    double begin = 0.0;
    size_t i = 0;
    for (; at > phases_[i].end && i + 1 < phases_.size(); ++i) {
      begin = phases_[i].end;
    }
    const Phase& phase = phases_[i];
    check(phase.end != begin,
          "one_cycle_lr: with total_steps {} and pct_start {} a phase has no steps: change one",
          options_.total_steps, options_.pct_start);
    const double part = (at - begin) / (phase.end - begin);
    set_rates(between(*phase.first_rates, *phase.last_rates, part));
    if (options_.cycle_momentum) {
      set_momenta(optimizer(), between(*phase.first_momenta, *phase.last_momenta, part));
    }
  }

  [[nodiscard]] Numbers between(const Numbers& first, const Numbers& last, double part) const {
    Numbers result;
    for (size_t i = 0; i < first.size(); ++i) {
      if (options_.anneal_strategy == OneCycleLrOptions::Anneal::cos) {
        const double wave = std::cos(std::numbers::pi * part) + 1;
        result.push_back(last[i] + (first[i] - last[i]) / 2.0 * wave);
      } else {
        result.push_back((last[i] - first[i]) * part + first[i]);
      }
    }
    return result;
  }

  OneCycleLrOptions options_;
  Numbers max_rates_;
  Numbers first_rates_;
  Numbers last_rates_;
  Numbers low_momenta_;
  Numbers high_momenta_;
  std::vector<Phase> phases_;
};

}  // namespace

std::unique_ptr<LrScheduler> one_cycle_lr(torch::optim::Optimizer& optimizer,
                                          const OneCycleLrOptions& options) {
  return make_schedule<OneCycle>(optimizer, options);
}

}  // namespace muster
