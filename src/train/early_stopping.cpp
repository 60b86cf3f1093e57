#include "monitor_internal.h"

#include <muster/base/check.h>
#include <muster/train/early_stopping.h>
#include <muster/value/convert.h>

#include <cmath>
#include <utility>

namespace muster {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_{std::move(options)} {
  check(!options_.monitor.empty(), "EarlyStopping: monitor must be given, such as \"val/loss\"");
  check(options_.patience >= 0, "patience: expected at least 0, found {}", options_.patience);
  check(options_.min_delta >= 0, "min_delta: expected at least 0, found {}", options_.min_delta);
}

void EarlyStopping::on_start(const Progress& progress) {
  if (progress.stage != Stage::fit) {
    return;
  }
  if (!std::exchange(loaded_, false)) {
    state_ = {};
  }
  state_.stopped_epoch.reset();
  validated_ = false;
  validation_has_it_ = false;
}

void EarlyStopping::on_epoch_end(const Progress& progress, const Report& report) {
  if (progress.training == nullptr) {
    return;
  }
  if (progress.stage == Stage::fit && progress.is_within_epoch()) {
    return;  // cut short: the training goes on with the rest of the epoch, if it does
  }
  const bool has_it = names(report, options_.monitor);
  std::optional<double> value;
  if (progress.stage != Stage::fit) {
    validated_ = true;
    validation_has_it_ = validation_has_it_ || has_it;
    if (!options_.check_on_train_epoch_end) {
      value = report.get(options_.monitor);
    }
  } else {
    if (options_.strict && (validated_ || options_.check_on_train_epoch_end)) {
      check_reported(*progress.training, options_.monitor, "EarlyStopping");
    }
    if (options_.check_on_train_epoch_end) {
      value = progress.training->metric(options_.monitor);
    } else if (!validation_has_it_) {
      value = report.get(options_.monitor);
    }
  }
  if (value) {
    check_value(progress, *value);
  }
}

void EarlyStopping::check_value(const Progress& progress, double value) {
  const std::string reason = reason_at(value);
  if (!reason.empty()) {
    state_.stopped_epoch = progress.epoch;
    progress.training->stop(reason);
  }
}

std::string EarlyStopping::reason_at(double value) {
  const std::string& monitor = options_.monitor;
  const MonitorMode mode = options_.mode;
  if (options_.check_finite && !std::isfinite(value)) {
    return format("{} is {}, which is not finite", monitor, value);
  }
  if (options_.stopping_threshold && is_better(value, *options_.stopping_threshold, mode)) {
    return format("{} is {}, better than the stopping threshold {}", monitor, value,
                  *options_.stopping_threshold);
  }
  if (options_.divergence_threshold && is_better(*options_.divergence_threshold, value, mode)) {
    return format("{} is {}, worse than the divergence threshold {}", monitor, value,
                  *options_.divergence_threshold);
  }
  const double least =
      mode == MonitorMode::min ? value + options_.min_delta : value - options_.min_delta;
  if (!state_.best_score || is_better(least, *state_.best_score, mode)) {
    state_.best_score = value;
    state_.wait_count = 0;
    return "";
  }
  ++state_.wait_count;
  if (state_.wait_count < options_.patience) {
    return "";
  }
  return format("{} did not get better in {} check{} (the best was {})", monitor, state_.wait_count,
                state_.wait_count == 1 ? "" : "s", *state_.best_score);
}

std::string EarlyStopping::state_key() const {
  return format("EarlyStopping(monitor={}, mode={})", options_.monitor,
                options_.mode == MonitorMode::min ? "min" : "max");
}

Value EarlyStopping::state() const { return to_value(state_); }

void EarlyStopping::load_state(const Value& state) {
  state_ = from_value<State>(state, "EarlyStopping");
  loaded_ = true;
}

}  // namespace muster
