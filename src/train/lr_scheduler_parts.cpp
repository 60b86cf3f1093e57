#include <muster/base/check.h>

#include <algorithm>

#include "src/train/lr_scheduler_internal.h"

namespace muster {
namespace {

using Parts = std::vector<std::shared_ptr<LrScheduler>>;

/// A scheduler made of others.
class PartsSchedule : public Schedule {
 public:
  PartsSchedule(torch::optim::Optimizer& optimizer, std::string name, const Parts& parts,
                bool is_sequence)
      : Schedule{optimizer, std::move(name)} {
    check(!parts.empty(), "{}: schedulers is empty; expected at least one", this->name());
    for (const auto& part : parts) {
      add(part, is_sequence);
    }
    check(rates() == parts_.back()->rates_when_made(),
          "{}: the rates changed after the last of its schedulers was made: make them right before",
          this->name());
  }

  /// The parts changed the rates when they were made: what the first one found is where it starts.
  void make() override { make_from(parts_.front()->rates_before_made()); }

  [[nodiscard]] bool may_be_part(bool of_sequence) const override { return !of_sequence; }
  [[nodiscard]] bool cycles_momentum() const override {
    return std::any_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->cycles_momentum(); });
  }

 protected:
  void save(Value& state) const override {
    Value::List states;
    for (const auto& part : parts_) {
      states.push_back(part->state());
    }
    state["schedulers"] = std::move(states);
  }
  void load(const Value& state) override {
    const auto& states = list_in(state, "schedulers", parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      parts_[i]->load_state(states[i]);
    }
  }

  [[nodiscard]] const std::vector<std::shared_ptr<Schedule>>& parts() const { return parts_; }

 private:
  void add(const std::shared_ptr<LrScheduler>& given, bool is_sequence) {
    auto part = std::dynamic_pointer_cast<Schedule>(given);
    check(part != nullptr, "{}: scheduler {} is null or was not made by a function of Muster",
          name(), parts_.size());
    check(part->may_be_part(is_sequence), "{}: scheduler {} is {}, which cannot be a part of it",
          name(), parts_.size(), part->name());
    check(&part->optimizer() == &optimizer(), "{}: scheduler {} ({}) has another optimizer", name(),
          parts_.size(), part->name());
    const bool twice = std::find(parts_.begin(), parts_.end(), part) != parts_.end();
    const bool follows =
        parts_.empty() || parts_.back()->rates_when_made() == part->rates_before_made();
    check(follows && !twice,
          "{}: scheduler {} ({}) was not made right after the one before it in the list: make "
          "each in the order of the list",
          name(), parts_.size(), part->name());
    parts_.push_back(std::move(part));
  }

  std::vector<std::shared_ptr<Schedule>> parts_;
};

class Sequence : public PartsSchedule {
 public:
  Sequence(torch::optim::Optimizer& optimizer, const SequentialLrOptions& options)
      : PartsSchedule{optimizer, "sequential_lr", options.schedulers, true},
        milestones_{options.milestones} {
    check(milestones_.size() + 1 == parts().size(),
          "sequential_lr: {} schedulers need {} milestones and have {}", parts().size(),
          parts().size() - 1, milestones_.size());
    check(std::is_sorted(milestones_.begin(), milestones_.end()) &&
              (milestones_.empty() || milestones_.front() >= 0),
          "sequential_lr: milestones must not fall, nor be negative");
  }

  void start(std::vector<double>& initial) override {
    for (const auto& part : parts()) {
      part->start(initial);
    }
    set_rates(initial);
    Schedule::start(initial);
  }
  void begin() override { active()->begin(); }
  void step(std::optional<double> /*metric*/) override {
    go_to(now() + 1);
    if (std::binary_search(milestones_.begin(), milestones_.end(), now())) {
      active()->begin_anew();
    } else {
      active()->step();
    }
  }

 private:
  [[nodiscard]] const std::shared_ptr<Schedule>& active() const {
    const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), now());
    return parts()[static_cast<size_t>(next - milestones_.begin())];
  }

  std::vector<int64_t> milestones_;
};

class Chain : public PartsSchedule {
 public:
  Chain(torch::optim::Optimizer& optimizer, const ChainedSchedulerOptions& options)
      : PartsSchedule{optimizer, "chained_scheduler", options.schedulers, false} {}

  void start(std::vector<double>& initial) override {
    for (const auto& part : parts()) {
      part->start(initial);
    }
    Schedule::start(initial);
  }
  void begin() override {}
  void step(std::optional<double> /*metric*/) override {
    go_to(now() + 1);
    for (const auto& part : parts()) {
      part->step();
    }
  }
};

}  // namespace

std::unique_ptr<LrScheduler> sequential_lr(torch::optim::Optimizer& optimizer,
                                           const SequentialLrOptions& options) {
  return make_schedule<Sequence>(optimizer, options);
}

std::unique_ptr<LrScheduler> chained_scheduler(torch::optim::Optimizer& optimizer,
                                               const ChainedSchedulerOptions& options) {
  return make_schedule<Chain>(optimizer, options);
}

}  // namespace muster
