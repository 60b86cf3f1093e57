#include "momentum_internal.h"
#include "type_name_internal.h"

#include <muster/base/format.h>
#include <muster/train/learning_rate_monitor.h>

#include <torch/optim/optimizer.h>

#include <typeinfo>
#include <vector>

namespace muster {

LearningRateMonitor::LearningRateMonitor(const LearningRateMonitorOptions& options)
    : options_{options} {}

bool LearningRateMonitor::logs_at(Interval interval) const {
  return !options_.logging_interval || *options_.logging_interval == interval;
}

void LearningRateMonitor::on_epoch_start(const Progress& progress) {
  if (progress.stage == Stage::fit && logs_at(Interval::epoch)) {
    log(*progress.training);
  }
}

void LearningRateMonitor::on_before_optimizer_step(const Progress& progress) {
  if (progress.training->is_logging_step() && logs_at(Interval::step)) {
    log(*progress.training);
  }
}

void LearningRateMonitor::log(Training& training) const {
  const torch::optim::Optimizer& optimizer = training.optimizer();
  const std::string name = "lr-" + short_type_name(typeid(optimizer));
  const auto& groups = optimizer.param_groups();
  const auto momentum = options_.log_momentum ? momenta(optimizer) : std::vector<double>{};
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string own = groups.size() > 1 ? format("{}/pg{}", name, i + 1) : name;
    training.log(own, groups[i].options().get_lr());
    if (options_.log_momentum) {
      training.log(own + "-momentum", momentum[i]);
    }
  }
}

}  // namespace muster
