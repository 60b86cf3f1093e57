#include "fit_log_internal.h"

#include "evaluate_internal.h"
#include "seed_internal.h"
#include "sync_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>

#include <map>
#include <string>

namespace muster {

FitLog::FitLog(FitContext& context, const std::vector<std::pair<std::string, Metric*>>& metrics)
    : context_{context},
      metrics_{metrics},
      state_{.group = context.group,
             .ledger = epoch_,
             .spool = context.spool,
             .run_dir = context.options.run_dir,
             .phase = context.phase,
             .stage = Stage::fit,
             .row = &row_} {}

void FitLog::hook(bool before, const Position& at, const std::function<void(Step&)>& hook) {
  state_.epoch = at.epoch;
  state_.global_step = at.global_step;
  context_.phase.stage = Stage::fit;
  context_.phase.epoch = at.epoch;
  context_.phase.step = at.global_step;
  state_.enter_hooks(before);
  seed_for(context_.options.seed, Stage::fit, at.epoch, before ? Moment::before : Moment::after);
  Step step{state_};
  hook(step);
}

EpochResult FitLog::sync(TrainingState& training, Ledger& ledger,
                         const std::vector<std::pair<std::string, Metric*>>& metrics) {
  context_.phase.part = Phase::Part::sync;
  context_.spool.drain(ledger);
  EpochResult result = sync_epoch(context_.group, ledger, metrics);
  ledger = Ledger{};
  stamp(result, Stage::fit, training.position.epoch, training.position.global_step);
  for (const auto& [name, value] : training.take_logged()) {
    check(!result.report.get(name), "a callback and the module both log {}", name);
    result.report.metrics.emplace_back(name, value);
  }
  training.update(result.report);
  return result;
}

void FitLog::take_images() { context_.spool.drain(row_); }

void FitLog::write_row(TrainingState& training) {
  EpochResult row = sync(training, row_, {});
  if (context_.writer != nullptr) {
    context_.phase.part = Phase::Part::publish;
    context_.writer->log_training(row);
  }
}

void FitLog::begin_epoch() {
  for (const auto& [name, metric] : metrics_) {
    metric->reset();
  }
}

Value FitLog::collect(const Value& run) {
  context_.spool.drain(row_);
  Value::List metrics;
  for (const auto& [name, metric] : metrics_) {
    metrics.emplace_back(metric->state());
  }
  const std::string mine = to_bytes(Value::List{epoch_.state(), row_.state(), std::move(metrics)});
  const auto ranks = context_.group.all_gather(mine);
  if (context_.writer == nullptr) {
    return {};
  }
  Ledger epoch;
  Ledger row;
  Value::List states;  // of each rank those of the metrics
  for (const auto& rank : ranks) {
    const Value theirs = from_bytes(rank.bytes);
    epoch.merge(theirs.as_list().at(0).as_string());
    row.merge(theirs.as_list().at(1).as_string());
    states.push_back(theirs.as_list().at(2));
  }
  Value::List images;  // their files go with the run
  for (const auto& image : row.images()) {
    images.emplace_back(Value::List{image.record.sha256, read_file(image.record.file)});
  }
  return Value::Dict{{"epoch", epoch.state()},
                     {"row", row.state()},
                     {"metrics", std::move(states)},
                     {"images", std::move(images)},
                     {"run", run}};
}

void FitLog::restore_row(const Value& collected) {
  std::map<std::string, std::string> files;
  for (const auto& item : collected.at("images").as_list()) {
    const auto& v = item.as_list();
    auto& file = files[v.at(0).as_string()];
    if (file.empty()) {
      const auto path = context_.spool.new_path();
      write_file_atomically(path, v.at(1).as_string(), Durability::process);
      file = path.string();
    }
  }
  row_ = Ledger{};
  row_.merge(collected.at("row").as_string());
  row_.relocate_images([&](const ImageRecord& image) { return files[image.sha256]; });
}

void FitLog::restore_epoch(const Value& collected) {
  epoch_ = Ledger{};
  epoch_.merge(collected.at("epoch").as_string());
  for (const auto& [name, metric] : metrics_) {
    metric->reset();
  }
  for (const auto& rank : collected.at("metrics").as_list()) {
    for (size_t i = 0; i < metrics_.size(); ++i) {
      if (const std::string& state = rank.as_list().at(i).as_string(); !state.empty()) {
        metrics_[i].second->merge(state);
      }
    }
  }
}

Report FitLog::end_epoch(TrainingState& training) { return publish(training, metrics_); }

void FitLog::finish(TrainingState& training) {
  static_cast<void>(publish(training, {}));
  if (context_.writer != nullptr) {
    context_.writer->publish_report();
  }
}

Report FitLog::publish(TrainingState& training,
                       const std::vector<std::pair<std::string, Metric*>>& metrics) {
  // Images and texts that wait for a row go along.
  epoch_.merge(row_.state());
  row_ = Ledger{};
  EpochResult result = sync(training, epoch_, metrics);
  if (context_.writer != nullptr) {
    context_.phase.part = Phase::Part::publish;
    const Position& at = training.position;
    context_.writer->log_training(result);
    context_.writer->publish_training(at.epoch + (at.epoch_ended ? 1 : 0), at.global_step);
  }
  return std::move(result.report);
}

SavedMetrics::SavedMetrics(const std::vector<std::pair<std::string, Metric*>>& metrics)
    : metrics_{metrics} {
  for (const auto& [name, metric] : metrics_) {
    states_.push_back(metric->state());
  }
}

void SavedMetrics::restore() {
  for (size_t i = 0; i < metrics_.size(); ++i) {
    Metric& metric = *metrics_[i].second;
    metric.reset();
    if (!states_[i].empty()) {
      metric.merge(states_[i]);
    }
  }
}

}  // namespace muster
