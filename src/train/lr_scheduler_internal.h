#pragma once

#include <muster/base/format.h>
#include <muster/train/lr_scheduler.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// What every scheduler made here has.
class Schedule : public LrScheduler {
 public:
  Schedule(torch::optim::Optimizer& optimizer, std::string name);

  [[nodiscard]] std::vector<double> rates() const final;
  [[nodiscard]] Value state() const final;
  void load_state(const Value& state) final;

  /// Step 0 as when it is made. `initial` is what Python keeps as `initial_lr` of each group; one
  /// that has rates of its own writes them there, as Python's does.
  virtual void start(std::vector<double>& initial);
  /// Step 0 from the rates that the groups have now.
  virtual void begin() = 0;
  /// Step 0 from the initial rates.
  void begin_anew();
  [[nodiscard]] virtual bool cycles_momentum() const { return false; }
  /// Whether it may be a part of a chain or, where that is asked, of a sequence.
  [[nodiscard]] virtual bool may_be_part(bool of_sequence) const;

  /// Called once, when the object is complete.
  virtual void make();
  [[nodiscard]] const std::vector<double>& rates_before_made() const { return before_made_; }
  [[nodiscard]] const std::vector<double>& rates_when_made() const { return when_made_; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] torch::optim::Optimizer& optimizer() const { return optimizer_; }

 protected:
  /// The rates; Error when the optimizer has other groups than it had.
  [[nodiscard]] std::vector<double> current_rates() const;
  void set_rates(const std::vector<double>& rates);
  /// Makes the rates before it are `before`, and starts.
  void make_from(std::vector<double> before);
  [[nodiscard]] size_t groups() const { return base_.size(); }
  /// `given` for each group; it holds one number for all, or one for each.
  [[nodiscard]] std::vector<double> per_group(const std::vector<double>& given,
                                              std::string_view option) const;

  virtual void save(Value& /*state*/) const {}
  virtual void load(const Value& /*state*/) {}

  int64_t now() const { return now_; }
  void go_to(int64_t step) { now_ = step; }
  [[nodiscard]] const std::vector<double>& base() const { return base_; }

 private:
  void check_groups() const;

  torch::optim::Optimizer& optimizer_;
  std::string name_;
  int64_t now_ = 0;
  std::vector<double> base_;
  std::vector<double> before_made_;
  std::vector<double> when_made_;
};

/// A member of a state; Error of kind `data` when it is not there or of another kind.
int64_t int_in(const Value& state, std::string_view key);
double double_in(const Value& state, std::string_view key);
std::vector<double> doubles_in(const Value& state, std::string_view key, size_t size);
const Value::List& list_in(const Value& state, std::string_view key, size_t size);
Value to_value(const std::vector<double>& numbers);

template <typename S, typename... Args>
std::unique_ptr<LrScheduler> make_schedule(Args&&... args) {
  auto schedule = std::make_unique<S>(std::forward<Args>(args)...);
  schedule->make();
  return schedule;
}

}  // namespace muster
