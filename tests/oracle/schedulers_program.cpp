// Prints the rates and momenta of many schedulers over 50 steps as JSON: NAME: {"rates": a list of
// those of each group, "momenta": the same}. After step 17 each goes on from its saved state.
#include <ATen/ops/zeros.h>
#include <muster/base/json_writer.h>
#include <muster/train/lr_scheduler.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdio>
#include <functional>

namespace {

using muster::LrScheduler;
using torch::optim::Optimizer;
using Made = std::unique_ptr<LrScheduler>;
using Anneal = muster::OneCycleLrOptions::Anneal;
using Plateau = muster::ReduceLrOnPlateauOptions;

struct Case {
  const char* name;
  std::function<Made(Optimizer&)> make;
  bool adam = false;
};

template <typename Optim, typename Options>
std::unique_ptr<Optimizer> optimizer_of(const Options& defaults) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.reserve(3);
  for (int i = 0; i < 3; ++i) {
    groups.emplace_back(std::vector<at::Tensor>{at::zeros({1}).requires_grad_()});
  }
  auto optimizer = std::make_unique<Optim>(groups, defaults);
  const double rates[] = {0.1, 0.02, 0.5};
  for (size_t i = 0; i < groups.size(); ++i) {
    optimizer->param_groups()[i].options().set_lr(rates[i]);
  }
  return optimizer;
}

double momentum_of(const torch::optim::OptimizerOptions& options) {
  if (const auto* sgd = dynamic_cast<const torch::optim::SGDOptions*>(&options)) {
    return sgd->momentum();
  }
  return std::get<0>(dynamic_cast<const torch::optim::AdamOptions&>(options).betas());
}

double metric(int step) { return step < 12 ? 1.0 / step : 0.0625 + 0.001 * ((step * 7) % 5); }

std::vector<Case> simple_cases() {
  const auto with = [](auto make, auto options) {
    return [make, options](Optimizer& o) { return make(o, options); };
  };
  return {
      {"step", with(muster::step_lr, muster::StepLrOptions{.step_size = 7, .gamma = 0.3})},
      {"step every", with(muster::step_lr, muster::StepLrOptions{.step_size = 1, .gamma = 0.9})},
      {"multi_step", with(muster::multi_step_lr,
                          muster::MultiStepLrOptions{.milestones = {30, 4, 4, 17}, .gamma = 0.4})},
      {"multi_step at 0",
       with(muster::multi_step_lr, muster::MultiStepLrOptions{.milestones = {0, 9}, .gamma = 0.5})},
      {"exponential", with(muster::exponential_lr, muster::ExponentialLrOptions{.gamma = 0.93})},
      {"polynomial",
       with(muster::polynomial_lr, muster::PolynomialLrOptions{.total_iters = 40, .power = 0.9})},
      {"polynomial default", with(muster::polynomial_lr, muster::PolynomialLrOptions{})},
      {"linear",
       with(muster::linear_lr,
            muster::LinearLrOptions{.start_factor = 0.01, .end_factor = 0.7, .total_iters = 23})},
      {"linear default", with(muster::linear_lr, muster::LinearLrOptions{})},
      {"linear to 0",
       with(muster::linear_lr,
            muster::LinearLrOptions{.start_factor = 1.0, .end_factor = 0.0, .total_iters = 10})},
      {"constant",
       with(muster::constant_lr, muster::ConstantLrOptions{.factor = 0.25, .total_iters = 9})},
      {"constant default", with(muster::constant_lr, muster::ConstantLrOptions{})},
      {"cosine", with(muster::cosine_annealing_lr,
                      muster::CosineAnnealingLrOptions{.t_max = 50, .eta_min = 1e-3})},
      {"cosine twice", with(muster::cosine_annealing_lr,
                            muster::CosineAnnealingLrOptions{.t_max = 11, .eta_min = 0.01})},
      {"cosine of 1",
       with(muster::cosine_annealing_lr, muster::CosineAnnealingLrOptions{.t_max = 1})},
      {"restarts", with(muster::cosine_annealing_warm_restarts,
                        muster::CosineAnnealingWarmRestartsOptions{.t_0 = 8, .eta_min = 1e-4})},
      {"restarts growing",
       with(muster::cosine_annealing_warm_restarts,
            muster::CosineAnnealingWarmRestartsOptions{.t_0 = 3, .t_mult = 2, .eta_min = 0.0})},
      {"lambda", with(muster::lambda_lr, muster::LambdaLrOptions{.factors = {[](int64_t step) {
                                                                   return std::pow(0.95, step);
                                                                 }}})},
      {"lambda each",
       with(muster::lambda_lr,
            muster::LambdaLrOptions{
                .factors = {
                    [](int64_t step) { return 1.0 / static_cast<double>(step + 1); },
                    [](int64_t) { return 2.0; },
                    [](int64_t step) { return std::floor(static_cast<double>(step) / 10.0); }}})},
  };
}

std::vector<Case> one_cycle_cases() {
  const auto one_cycle = [](const muster::OneCycleLrOptions& options) {
    return [options](Optimizer& o) { return muster::one_cycle_lr(o, options); };
  };
  return {
      {"one_cycle", one_cycle({.max_lr = {0.4}, .total_steps = 50})},
      {"one_cycle adam", one_cycle({.max_lr = {0.4}, .total_steps = 50}), true},
      {"one_cycle each", one_cycle({.max_lr = {0.4, 0.1, 1.0},
                                    .total_steps = 60,
                                    .pct_start = 0.45,
                                    .anneal_strategy = Anneal::linear,
                                    .base_momentum = {0.8, 0.7, 0.6},
                                    .max_momentum = {0.9, 0.95, 0.99},
                                    .div_factor = 10.0,
                                    .final_div_factor = 100.0})},
      {"one_cycle three", one_cycle({.max_lr = {0.4}, .total_steps = 50, .three_phase = true})},
      {"one_cycle three linear",
       one_cycle({.max_lr = {0.4},
                  .total_steps = 55,
                  .pct_start = 0.4,
                  .anneal_strategy = Anneal::linear,
                  .three_phase = true}),
       true},
      {"one_cycle down", one_cycle({.max_lr = {0.4}, .total_steps = 50, .pct_start = 0.0})},
      {"one_cycle still", one_cycle({.max_lr = {0.4}, .total_steps = 50, .cycle_momentum = false})},
  };
}

std::vector<Case> plateau_cases() {
  const auto plateau = [](const Plateau& options) {
    return [options](Optimizer& o) { return muster::reduce_lr_on_plateau(o, options); };
  };
  return {
      {"plateau", plateau({})},
      {"plateau quick", plateau({.factor = 0.5, .patience = 2, .cooldown = 3, .min_lr = {0.004}})},
      {"plateau abs", plateau({.factor = 0.7,
                               .patience = 1,
                               .threshold = 0.01,
                               .threshold_mode = Plateau::ThresholdMode::abs,
                               .min_lr = {0.01, 0.0, 0.2},
                               .eps = 1e-3})},
      {"plateau max", plateau({.mode = Plateau::Mode::max, .factor = 0.9, .patience = 0})},
      {"plateau max abs", plateau({.mode = Plateau::Mode::max,
                                   .factor = 0.8,
                                   .patience = 3,
                                   .threshold = 0.002,
                                   .threshold_mode = Plateau::ThresholdMode::abs})},
  };
}

std::vector<Case> part_cases() {
  const auto warm_up = [](Optimizer& o) {
    return muster::linear_lr(o, {.start_factor = 0.1, .total_iters = 6});
  };
  const auto cosine = [](Optimizer& o) {
    return muster::cosine_annealing_lr(o, {.t_max = 40, .eta_min = 1e-4});
  };
  const auto decay = [](Optimizer& o) { return muster::exponential_lr(o, {.gamma = 0.97}); };
  const auto steps = [](Optimizer& o) {
    return muster::step_lr(o, {.step_size = 5, .gamma = 0.5});
  };
  const auto restarts = [](Optimizer& o) {
    return muster::cosine_annealing_warm_restarts(o, {.t_0 = 4, .t_mult = 2});
  };
  return {
      {"sequence",
       [=](Optimizer& o) {
         return muster::sequential_lr(o,
                                      {.schedulers = {warm_up(o), cosine(o)}, .milestones = {6}});
       }},
      {"sequence of 4",
       [=](Optimizer& o) {
         return muster::sequential_lr(
             o, {.schedulers = {muster::constant_lr(o, {}), decay(o), restarts(o), steps(o)},
                 .milestones = {3, 12, 30}});
       }},
      {"sequence from 0",
       [=](Optimizer& o) {
         return muster::sequential_lr(
             o, {.schedulers = {warm_up(o), steps(o), decay(o)}, .milestones = {0, 20}});
       }},
      {"sequence of one",
       [=](Optimizer& o) { return muster::sequential_lr(o, {.schedulers = {warm_up(o)}}); }},
      {"sequence to one_cycle",
       [=](Optimizer& o) {
         return muster::sequential_lr(
             o, {.schedulers = {warm_up(o),
                                muster::one_cycle_lr(o, {.max_lr = {0.4}, .total_steps = 44})},
                 .milestones = {8}});
       }},
      {"sequence from one_cycle",
       [=](Optimizer& o) {
         return muster::sequential_lr(
             o, {.schedulers = {muster::one_cycle_lr(o, {.max_lr = {0.4}, .total_steps = 20}),
                                cosine(o)},
                 .milestones = {20}});
       },
       true},
      {"chain",
       [=](Optimizer& o) {
         return muster::chained_scheduler(o, {.schedulers = {warm_up(o), decay(o), steps(o)}});
       }},
      {"chain of cosine",
       [=](Optimizer& o) {
         return muster::chained_scheduler(o, {.schedulers = {warm_up(o), cosine(o)}});
       }},
      {"chain of sequence",
       [=](Optimizer& o) {
         const std::shared_ptr<LrScheduler> first = decay(o);
         return muster::chained_scheduler(
             o,
             {.schedulers = {first, muster::sequential_lr(o, {.schedulers = {steps(o), cosine(o)},
                                                              .milestones = {10}})}});
       }},
  };
}

/// A scheduler and what it works on.
struct Training {
  explicit Training(const Case& test)
      : optimizer{test.adam ? optimizer_of<torch::optim::Adam>(torch::optim::AdamOptions{0.3})
                            : optimizer_of<torch::optim::SGD>(
                                  torch::optim::SGDOptions{0.3}.momentum(0.9))},
        scheduler{test.make(*optimizer)} {}

  std::unique_ptr<Optimizer> optimizer;
  Made scheduler;
};

void print(muster::JsonWriter& json, const Case& test) {
  auto training = std::make_unique<Training>(test);
  std::vector<std::vector<double>> rates;
  std::vector<std::vector<double>> momenta;
  for (int step = 0; step <= 50; ++step) {
    if (step > 0 && training->scheduler->needs_metric()) {
      training->scheduler->step(metric(step));
    } else if (step > 0) {
      training->scheduler->step();
    }
    if (step == 17) {
      const auto state = training->scheduler->state();
      training = std::make_unique<Training>(test);
      training->scheduler->load_state(state);
    }
    rates.push_back(training->scheduler->rates());
    momenta.emplace_back();
    for (const auto& group : training->optimizer->param_groups()) {
      momenta.back().push_back(momentum_of(group.options()));
    }
  }
  json.key(test.name).begin_object();
  for (const auto& [name, rows] : {std::pair{"rates", rates}, std::pair{"momenta", momenta}}) {
    json.key(name).begin_list();
    for (const auto& row : rows) {
      json.begin_list();
      for (const double number : row) {
        json.value(number);
      }
      json.end_list();
    }
    json.end_list();
  }
  json.end_object();
}

}  // namespace

int main() {
  muster::JsonWriter json;
  json.begin_object();
  for (const auto& cases : {simple_cases(), one_cycle_cases(), plateau_cases(), part_cases()}) {
    for (const auto& test : cases) {
      print(json, test);
    }
  }
  json.end_object();
  std::puts(json.text().c_str());
  return 0;
}
