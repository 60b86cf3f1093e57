#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <optional>
#include <tuple>

#include "src/train/momentum_internal.h"

namespace muster {
namespace {

namespace optim = torch::optim;

/// Calls `momentum` or `betas` with the options as what they are; false when they have neither.
template <typename Momentum, typename Betas>
bool with_options(optim::OptimizerOptions& options, const Momentum& momentum, const Betas& betas) {
  if (auto* sgd = dynamic_cast<optim::SGDOptions*>(&options)) {
    momentum(*sgd);
  } else if (auto* rmsprop = dynamic_cast<optim::RMSpropOptions*>(&options)) {
    momentum(*rmsprop);
  } else if (auto* adam = dynamic_cast<optim::AdamOptions*>(&options)) {
    betas(*adam);
  } else if (auto* adamw = dynamic_cast<optim::AdamWOptions*>(&options)) {
    betas(*adamw);
  } else {
    return false;
  }
  return true;
}

std::optional<double> momentum_of(const optim::OptimizerOptions& options) {
  const auto copy = options.clone();
  double found = 0.0;
  const bool has = with_options(
      *copy, [&](const auto& some) { found = some.momentum(); },
      [&](const auto& some) { found = std::get<0>(some.betas()); });
  return has ? std::optional{found} : std::nullopt;
}

}  // namespace

bool has_momentum(const optim::Optimizer& optimizer) {
  return momentum_of(optimizer.defaults()).has_value();
}

std::vector<double> momenta(const optim::Optimizer& optimizer) {
  std::vector<double> result;
  for (const auto& group : optimizer.param_groups()) {
    result.push_back(momentum_of(group.options()).value_or(0.0));
  }
  return result;
}

void set_momenta(optim::Optimizer& optimizer, const std::vector<double>& momenta) {
  for (size_t i = 0; i < momenta.size(); ++i) {
    const double value = momenta[i];
    with_options(
        optimizer.param_groups()[i].options(), [&](auto& some) { some.momentum(value); },
        [&](auto& some) {
          some.betas({value, std::get<1>(some.betas())});
        });
  }
}

}  // namespace muster
