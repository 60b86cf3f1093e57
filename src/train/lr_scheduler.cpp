#include <muster/base/check.h>
#include <torch/optim/optimizer.h>

#include <cmath>

#include "src/train/lr_scheduler_internal.h"
#include "src/train/momentum_internal.h"

namespace muster {
namespace {

std::vector<double> rates_of(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) {
    rates.push_back(group.options().get_lr());
  }
  return rates;
}

const Value& member(const Value& state, std::string_view key) {
  const Value* found = state.find(key);
  check(found != nullptr, ErrorKind::data, "The state of a learning-rate scheduler lacks '{}'",
        key);
  return *found;
}

void check_kind(bool ok, std::string_view key, const Value& found, std::string_view expected) {
  check(ok, ErrorKind::data,
        "'{}' in the state of a learning-rate scheduler is {} where {} is expected", key,
        found.kind(), expected);
}

}  // namespace

int64_t int_in(const Value& state, std::string_view key) {
  const Value& found = member(state, key);
  check_kind(found.is_int(), key, found, "an int");
  return found.as_int();
}

double double_in(const Value& state, std::string_view key) {
  const Value& found = member(state, key);
  check_kind(found.is_double(), key, found, "a float");
  return found.as_double();
}

const Value::List& list_in(const Value& state, std::string_view key, size_t size) {
  const Value& found = member(state, key);
  check_kind(found.is_list(), key, found, "a list");
  const auto& list = found.as_list();
  check(list.size() == size, ErrorKind::data,
        "'{}' in the state of a learning-rate scheduler has {} items where this one has {}", key,
        list.size(), size);
  return list;
}

std::vector<double> doubles_in(const Value& state, std::string_view key, size_t size) {
  std::vector<double> numbers;
  for (const Value& item : list_in(state, key, size)) {
    check_kind(item.is_double(), key, item, "a list of floats");
    numbers.push_back(item.as_double());
  }
  return numbers;
}

Value to_value(const std::vector<double>& numbers) {
  return Value::List(numbers.begin(), numbers.end());
}

Schedule::Schedule(torch::optim::Optimizer& optimizer, std::string name)
    : optimizer_{optimizer}, name_{std::move(name)}, base_{rates_of(optimizer)} {}

std::vector<double> Schedule::rates() const { return rates_of(optimizer_); }

void Schedule::check_groups() const {
  const size_t found = optimizer_.param_groups().size();
  check(found == groups(),
        "{}: the optimizer has {} parameter groups now and had {} when the scheduler was made",
        name_, found, groups());
}

std::vector<double> Schedule::current_rates() const {
  check_groups();
  return rates();
}

void Schedule::set_rates(const std::vector<double>& rates) {
  check_groups();
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < rates.size(); ++i) {
    check(std::isfinite(rates[i]), "{}: the rate of group {} is {} at step {}", name_, i, rates[i],
          now_);
  }
  for (size_t i = 0; i < rates.size(); ++i) {
    groups[i].options().set_lr(rates[i]);
  }
}

void Schedule::start(std::vector<double>& initial) {
  base_ = initial;
  now_ = 0;
  begin();
}

void Schedule::begin_anew() {
  set_rates(base_);
  now_ = 0;
  begin();
}

bool Schedule::may_be_part(bool /*of_sequence*/) const { return true; }

void Schedule::make() { make_from(rates()); }

void Schedule::make_from(std::vector<double> before) {
  before_made_ = std::move(before);
  std::vector<double> initial = before_made_;
  set_rates(initial);
  start(initial);
  when_made_ = rates();
}

std::vector<double> Schedule::per_group(const std::vector<double>& given,
                                        std::string_view option) const {
  check(given.size() == 1 || given.size() == groups(),
        "{}: {} holds {} numbers; expected 1 for all groups, or {}, one for each", name_, option,
        given.size(), groups());
  for (const double number : given) {
    check(std::isfinite(number), "{}: {} is {}", name_, option, number);
  }
  return given.size() == groups() ? given : std::vector<double>(groups(), given.front());
}

Value Schedule::state() const {
  Value state;
  state["name"] = name_;
  state["step"] = now_;
  state["initial_rates"] = to_value(base_);
  state["rates"] = to_value(rates());
  if (cycles_momentum()) {
    state["momenta"] = to_value(momenta(optimizer_));
  }
  save(state);
  return state;
}

void Schedule::load_state(const Value& state) {
  const Value& name = member(state, "name");
  check(name.is_string() && name.as_string() == name_, ErrorKind::data,
        "The saved learning-rate scheduler is {}; this one is {}: make the one that was saved",
        name.is_string() ? name.as_string() : std::string{"unknown"}, name_);
  const int64_t step = int_in(state, "step");
  check(step >= 0, ErrorKind::data, "The saved learning-rate scheduler is at step {}", step);
  auto base = doubles_in(state, "initial_rates", groups());
  const auto rates = doubles_in(state, "rates", groups());
  const auto saved_momenta =
      cycles_momentum() ? doubles_in(state, "momenta", groups()) : std::vector<double>{};
  load(state);  // parts set rates and momenta of their own, which the whole's replace
  base_ = std::move(base);
  now_ = step;
  set_rates(rates);
  set_momenta(optimizer_, saved_momenta);
}

}  // namespace muster
