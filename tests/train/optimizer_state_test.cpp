#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <muster/io/value_file.h>
#include <muster/train/optimizer_state.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/base/expect_error.h"

namespace muster {
namespace {

namespace optim = torch::optim;

using Groups = std::vector<optim::OptimizerParamGroup>;
using Made = std::unique_ptr<optim::Optimizer>;
using Parameters = std::vector<at::Tensor>;

at::Tensor wave(at::IntArrayRef shape, double phase) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::arange(count, at::kFloat).mul(0.7).add(phase).sin().reshape(shape);
}

/// Weights; the last is in no loss.
Parameters initial(at::MemoryFormat images = at::MemoryFormat::ChannelsLast) {
  return {wave({5, 3}, 0.1).requires_grad_(), wave({3}, 0.2).requires_grad_(),
          wave({2, 3, 4, 4}, 0.3).contiguous(images).requires_grad_(),
          wave({2}, 0.4).requires_grad_()};
}

Parameters copies(const Parameters& parameters) {
  Parameters result;
  for (const auto& one : parameters) result.push_back(one.detach().clone().requires_grad_());
  return result;
}

void step(optim::Optimizer& optimizer, const Parameters& p, int at) {
  optimizer.step([&] {
    optimizer.zero_grad();
    const auto hidden = wave({7, 5}, at).matmul(p[0]).add(p[1]).tanh();
    auto loss = hidden.sub(wave({7, 3}, 0.5 * at)).square().mean() +
                p[2].mul(wave({2, 3, 4, 4}, 0.1 * at)).sum().sub(1).square().mul(0.01);
    loss.backward();
    return loss;
  });
}

/// Bits of parameters and state.
std::string bits(const optim::Optimizer& optimizer, const Parameters& parameters) {
  Value::List list{optimizer_state(optimizer)};
  for (const auto& one : parameters) list.emplace_back(one);
  return to_bytes(list);
}

/// Two groups, the second with a rate of its own.
Groups in_two_groups(const Parameters& p) {
  Groups groups;
  groups.emplace_back(Parameters{p[0]});
  groups.emplace_back(Parameters{p[1], p[2], p[3]});
  return groups;
}

template <typename Optimizer, typename Options>
Made made(const Parameters& parameters, const Options& options) {
  auto optimizer = std::make_unique<Optimizer>(in_two_groups(parameters), options);
  optimizer->param_groups()[1].options().set_lr(0.5 * options.lr());
  return optimizer;
}

struct Case {
  const char* name;
  std::function<Made(const Parameters&)> make;
  /// The same optimizer before its options are loaded.
  std::function<Made(const Parameters&)> make_other;
  /// libtorch's LBFGS takes no other.
  at::MemoryFormat images = at::MemoryFormat::ChannelsLast;
};

template <typename Optimizer, typename Options>
Case with(const char* name, Options options) {
  return {name, [=](const Parameters& p) { return made<Optimizer>(p, options); },
          [](const Parameters& p) { return made<Optimizer>(p, Options{0.9}); }};
}

Made lbfgs(const Parameters& p, const optim::LBFGSOptions& options) {
  return std::make_unique<optim::LBFGS>(p, options);
}

std::vector<Case> every() {
  const auto search =
      optim::LBFGSOptions{0.5}.max_iter(3).history_size(4).line_search_fn("strong_wolfe");
  return {
      with<optim::SGD>("SGD", optim::SGDOptions{0.1}),
      with<optim::SGD>("SGD with all",
                       optim::SGDOptions{0.1}.momentum(0.9).weight_decay(0.01).nesterov(true)),
      with<optim::SGD>("SGD dampened", optim::SGDOptions{0.1}.momentum(0.8).dampening(0.3)),
      with<optim::Adam>("Adam", optim::AdamOptions{0.01}.betas({0.8, 0.95}).eps(1e-6)),
      with<optim::Adam>("Adam amsgrad", optim::AdamOptions{0.01}.weight_decay(0.1).amsgrad(true)),
      with<optim::AdamW>("AdamW", optim::AdamWOptions{0.01}),
      with<optim::AdamW>("AdamW amsgrad", optim::AdamWOptions{0.01}.amsgrad(true)),
      with<optim::Adagrad>(
          "Adagrad",
          optim::AdagradOptions{0.1}.lr_decay(0.1).weight_decay(0.01).initial_accumulator_value(
              0.5)),
      with<optim::RMSprop>("RMSprop", optim::RMSpropOptions{0.01}.alpha(0.9)),
      with<optim::RMSprop>(
          "RMSprop with all",
          optim::RMSpropOptions{0.01}.momentum(0.9).centered(true).weight_decay(0.01)),
      {"LBFGS", [](const auto& p) { return lbfgs(p, optim::LBFGSOptions{0.1}.max_iter(2)); },
       [](const auto& p) { return lbfgs(p, {}); }, at::MemoryFormat::Contiguous},
      {"LBFGS with a search", [=](const auto& p) { return lbfgs(p, search); },
       [](const auto& p) { return lbfgs(p, {}); }, at::MemoryFormat::Contiguous},
  };
}

TEST(OptimizerState, ResumesEveryOptimizerToTheBit) {
  for (const auto& test : every()) {
    SCOPED_TRACE(test.name);
    for (const int saved_at : {0, 1, 6}) {
      const auto straight = initial(test.images);
      const auto optimizer = test.make(straight);
      for (int at = 0; at < saved_at; ++at) step(*optimizer, straight, at);

      const auto file = value_file_bytes(optimizer_state(*optimizer));
      const auto resumed = copies(straight);
      const auto fresh = test.make_other(resumed);
      load_optimizer_state(*fresh, value_from_file(parse_safetensors(file, "file")));
      EXPECT_EQ(bits(*fresh, resumed), bits(*optimizer, straight));
      for (int at = saved_at; at < saved_at + 5; ++at) {
        step(*optimizer, straight, at);
        step(*fresh, resumed, at);
      }
      EXPECT_EQ(bits(*fresh, resumed), bits(*optimizer, straight));
      EXPECT_FALSE(identical(straight[0], initial()[0]));
    }
  }
}

TEST(OptimizerState, IsACopyBothWays) {
  for (const auto& test : every()) {
    SCOPED_TRACE(test.name);
    const auto parameters = initial(test.images);
    const auto optimizer = test.make(parameters);
    for (int at = 0; at < 3; ++at) step(*optimizer, parameters, at);
    const auto state = optimizer_state(*optimizer);
    const auto before = to_bytes(state);
    step(*optimizer, parameters, 3);
    EXPECT_EQ(to_bytes(state), before);
    load_optimizer_state(*optimizer, state);
    step(*optimizer, parameters, 4);
    EXPECT_EQ(to_bytes(state), before);
  }
}

TEST(OptimizerState, ForgetsWhatTheOptimizerHadBefore) {
  const auto parameters = initial();
  const auto optimizer = made<optim::SGD>(parameters, optim::SGDOptions{0.1}.momentum(0.9));
  const auto nothing = optimizer_state(*optimizer);
  step(*optimizer, parameters, 0);
  load_optimizer_state(*optimizer, nothing);
  EXPECT_TRUE(identical(optimizer_state(*optimizer), nothing));
}

TEST(OptimizerState, HasPythonsNamesAndNullWithoutAGradient) {
  const auto parameters = initial();
  const auto optimizer = made<optim::Adam>(parameters, optim::AdamOptions{0.25});
  step(*optimizer, parameters, 0);
  const auto state = optimizer_state(*optimizer);
  const auto& second = state.find("groups")->as_list().at(1);
  EXPECT_TRUE(identical(*second.find("options"), Value::Dict{{"lr", 0.125},
                                                             {"betas", Value::List{0.9, 0.999}},
                                                             {"eps", 1e-8},
                                                             {"weight_decay", 0.0},
                                                             {"amsgrad", false}}));
  const auto& states = second.find("parameters")->as_list();
  ASSERT_EQ(states.size(), 3U);
  EXPECT_EQ(to_json(states[0]),
            R"({"step": 1, "exp_avg": "float32[3]", "exp_avg_sq": "float32[3]", )"
            R"("max_exp_avg_sq": null})");
  EXPECT_TRUE(states[2].is_null());
}

TEST(OptimizerState, TakesTheTypeAndTheStridesOfTheParameters) {
  const auto parameters = initial();
  const auto optimizer = made<optim::Adam>(parameters, optim::AdamOptions{0.01});
  step(*optimizer, parameters, 0);
  const auto state = optimizer_state(*optimizer);
  Parameters wide;
  for (const auto& one : parameters) {
    wide.push_back(one.detach().to(at::kDouble).requires_grad_());
  }
  const auto other = made<optim::Adam>(wide, optim::AdamOptions{0.01});
  load_optimizer_state(*other, state);
  const auto& image =
      static_cast<optim::AdamParamState&>(*other->state().at(wide[2].unsafeGetTensorImpl()));
  EXPECT_EQ(image.exp_avg().scalar_type(), at::kDouble);
  EXPECT_EQ(image.exp_avg().strides(), wide[2].strides());
  EXPECT_FALSE(image.exp_avg().is_contiguous());
}

class WrongState : public testing::Test {
 protected:
  WrongState() { step(*optimizer_, parameters_, 0); }

  void expect_refused(const Value& state, const std::string& part) {
    const auto before = bits(*optimizer_, parameters_);
    const auto error = test::error_of([&] { load_optimizer_state(*optimizer_, state); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(test::contains(error.what(), part)) << error.what();
    EXPECT_EQ(bits(*optimizer_, parameters_), before);
  }
  /// The state, with `change` applied to the first group.
  template <typename Change>
  Value with_group(const Change& change) {
    Value state = optimizer_state(*optimizer_);
    change(state["groups"].as_list().at(0));
    return state;
  }

  Parameters parameters_ = initial();
  Made optimizer_ = made<optim::Adam>(parameters_, optim::AdamOptions{0.01});
};

TEST_F(WrongState, NamesAnotherTypeOrNumberOfGroupsOrParameters) {
  const auto other = initial();
  expect_refused(optimizer_state(*made<optim::AdamW>(other, optim::AdamWOptions{0.01})),
                 "optimizer is Adam, the saved one AdamW");
  expect_refused(optimizer_state(optim::Adam{other, optim::AdamOptions{0.01}}),
                 "has 2 groups of parameters, the saved one 1");
  expect_refused(with_group([](Value& group) { group["parameters"].as_list().emplace_back(); }),
                 "optimizer.groups[0].parameters: the optimizer's group has 1 parameters, the "
                 "saved one 2");
}

TEST_F(WrongState, NamesATensorThatIsNotLikeItsParameter) {
  const auto with_average = [&](const Value& average) {
    return with_group(
        [&](Value& group) { group["parameters"].as_list().at(0)["exp_avg"] = average; });
  };
  const std::string place = "optimizer.groups[0].parameters[0].exp_avg: expected ";
  expect_refused(with_average(at::zeros({3, 5})), place +
                                                      "float32[5, 3] as the optimizer's "
                                                      "parameter is, found float32[3, 5]");
  expect_refused(with_average(at::zeros({5, 3}, at::kLong)), "found int64[5, 3]");
  expect_refused(with_average({}), place + "a tensor, found null");
  expect_refused(with_average(at::Tensor{}), place + "a tensor");
  expect_refused(with_average(3), place + "a tensor");
}

TEST_F(WrongState, NamesWhatIsMissingOrUnknownOrOfAnotherKind) {
  expect_refused({}, "optimizer: expected a dict of type and groups");
  expect_refused(Value::Dict{{"type", "Adam"}, {"groups", 3}}, "optimizer: expected a dict");
  expect_refused(with_group([](Value& group) { group = 3; }), "optimizer.groups[0]: expected");
  const std::string options = "optimizer.groups[0].options";
  expect_refused(with_group([](Value& group) { group["options"] = "x"; }), options + ": expected");
  expect_refused(with_group([](Value& group) { group["options"]["lr"] = "x"; }),
                 options + ".lr: expected a float");
  expect_refused(with_group([](Value& group) { group["options"]["rate"] = 1; }), "rate");
  expect_refused(with_group([](Value& group) { group["options"] = Value::Dict{}; }),
                 options + ": 'lr' is missing");
  expect_refused(
      with_group([](Value& group) { group["parameters"].as_list().at(0)["step"] = 0.5; }),
      "optimizer.groups[0].parameters[0].step: expected an int");
}

TEST(OptimizerState, ChecksTheSharedTensorsOfLbfgs) {
  const auto parameters = initial(at::MemoryFormat::Contiguous);
  const auto optimizer = lbfgs(parameters, optim::LBFGSOptions{0.1}.max_iter(3));
  step(*optimizer, parameters, 0);
  const auto state = optimizer_state(*optimizer);
  const auto refused = [&](const char* name, const Value& wrong) {
    Value changed = state;
    changed["groups"].as_list().at(0)["parameters"].as_list().at(0)[name] = wrong;
    const auto error = test::error_of([&] { load_optimizer_state(*optimizer, changed); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return std::string{error.what()};
  };
  const std::string place = "optimizer.groups[0].parameters[0].";
  EXPECT_EQ(refused("d", at::zeros({115})),
            place +
                "d: expected float32[116] as the optimizer's parameters have numbers, found "
                "float32[115]");
  EXPECT_EQ(refused("old_dirs", Value::List{at::zeros({1})}).find(place + "old_dirs[0]: "), 0U);
  EXPECT_EQ(refused("ro", Value::List{at::zeros({1})}),
            place + "ro[0]: expected one number, found float32[1]");
}

TEST(OptimizerState, RefusesATypeThatItDoesNotKnow) {
  class Mine : public optim::SGD {
   public:
    using optim::SGD::SGD;
  };
  const auto parameters = initial();
  Mine mine{parameters, optim::SGDOptions{0.1}};
  const auto saving = test::error_of([&] { optimizer_state(mine); });
  EXPECT_EQ(saving.kind(), ErrorKind::usage);
  EXPECT_TRUE(test::contains(saving.what(), "Mine")) << saving.what();
  EXPECT_TRUE(test::contains(saving.what(), "use libtorch's SGD, ")) << saving.what();
  EXPECT_EQ(test::error_of([&] { load_optimizer_state(mine, {}); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace muster
