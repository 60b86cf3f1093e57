#pragma once

#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace muster {

/// Whether the optimizer's groups have a momentum (SGD, RMSprop) or a first beta (Adam, AdamW).
bool has_momentum(const torch::optim::Optimizer& optimizer);

/// Momentum or first beta of each group.
std::vector<double> momenta(const torch::optim::Optimizer& optimizer);
void set_momenta(torch::optim::Optimizer& optimizer, const std::vector<double>& momenta);

}  // namespace muster
