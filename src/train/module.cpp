#include "names_internal.h"

#include <muster/io/weights.h>
#include <muster/train/module.h>
#include <muster/train/trainer.h>

#include <algorithm>

namespace muster {

void ModuleBase::register_metric(std::string name, Metric& metric) {
  const bool taken = std::any_of(metrics_.begin(), metrics_.end(),
                                 [&](const auto& item) { return item.first == name; });
  check_name("register_metric", name);
  check(!taken, "register_metric(\"{}\"): a metric needs a name of its own", name);
  metrics_.emplace_back(std::move(name), &metric);
}

void ModuleBase::enter_eval() {
  was_training_ = is_training();
  modes_.clear();
  for (const auto& child : children()) {
    for (const auto& module : child->modules()) {
      modes_.emplace_back(module, module->is_training());
    }
  }
  eval();
}

void ModuleBase::leave_eval() {
  // A module comes before those below it, whose modes it changes too.
  train(std::exchange(was_training_, true));
  for (const auto& [module, was_training] : modes_) {
    module->train(was_training);
  }
  modes_.clear();
}

void load_weights(ModuleBase& module, const std::string& path) {
  std::vector<std::pair<std::string, at::Tensor>> targets;
  for (const auto& item : module.named_parameters()) {
    targets.emplace_back(item.key(), item.value());
  }
  for (const auto& item : module.named_buffers()) {
    targets.emplace_back(item.key(), item.value());
  }
  load_weights(std::filesystem::path{path}, targets);
}

}  // namespace muster
