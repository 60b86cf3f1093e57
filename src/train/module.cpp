#include "module_internal.h"
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

Optimizers ModuleBase::configure_optimizers() { missing("configure_optimizers"); }

void ModuleBase::missing(const char* step) {
  fail(ErrorKind::usage, "the module has no {}; override it to run this stage", step);
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

NamedTensors parameters_of(const torch::nn::Module& module) {
  NamedTensors out;
  for (const auto& item : module.named_parameters()) {
    out.emplace_back(item.key(), item.value());
  }
  return out;
}

NamedTensors buffers_of(const torch::nn::Module& module) {
  NamedTensors out;
  for (const auto& item : module.named_buffers()) {
    out.emplace_back(item.key(), item.value());
  }
  return out;
}

void convert(ModuleBase& module, Precision precision) {
  if (precision == Precision::f64_true) {
    module.to(at::kDouble);
  }
}

void load_weights(ModuleBase& module, const std::string& path) {
  NamedTensors targets = parameters_of(module);
  const NamedTensors buffers = buffers_of(module);
  targets.insert(targets.end(), buffers.begin(), buffers.end());
  load_weights(std::filesystem::path{path}, targets);
}

}  // namespace muster
