#include <muster/io/weights.h>
#include <muster/train/module.h>
#include <muster/train/trainer.h>

#include <algorithm>

namespace muster {

void ModuleBase::register_metric(std::string name, Metric& metric) {
  const bool taken = std::any_of(metrics_.begin(), metrics_.end(),
                                 [&](const auto& item) { return item.first == name; });
  check(!name.empty() && !taken, "register_metric(\"{}\"): a metric needs a name of its own", name);
  metrics_.emplace_back(std::move(name), &metric);
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
