#include "file_pattern_internal.h"
#include "monitor_internal.h"

#include <muster/base/check.h>
#include <muster/train/model_checkpoint.h>
#include <muster/value/convert.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

namespace muster {

namespace {

/// A checkpoint that stays.
struct Kept {
  std::string name{};
  std::optional<double> score{};
};

/// What a checkpoint holds of this.
struct Saved {
  /// Of a training without an id, for what its checkpoints' names stand.
  std::string run_dir{};
  std::vector<Kept> kept{};       // in the order of writing
  std::string last{};             // the newest
  std::optional<int64_t> step{};  // of the newest
};

std::string absolute(const std::string& folder) {
  return std::filesystem::absolute(folder).lexically_normal().string();
}

ModelCheckpointOptions checked(ModelCheckpointOptions options) {
  check(options.save_top_k >= -1, "save_top_k: expected -1 for all, or at least 0, found {}",
        options.save_top_k);
  check(options.every_n_train_steps >= 0, "every_n_train_steps: expected at least 0, found {}",
        options.every_n_train_steps);
  if (!options.every_n_epochs) {
    options.every_n_epochs = options.every_n_train_steps > 0 ? 0 : 1;
  }
  check(*options.every_n_epochs >= 0, "every_n_epochs: expected at least 0, found {}",
        *options.every_n_epochs);
  return options;
}

}  // namespace

struct ModelCheckpoint::State {
  explicit State(ModelCheckpointOptions given)
      : options{checked(std::move(given))},
        pattern{options.filename, options.auto_insert_metric_name} {}

  /// What becomes of a checkpoint before it is written.
  struct Plan {
    bool stays = false;
    /// Those kept so far that it displaces.
    std::vector<std::string> displaced{};
  };

  [[nodiscard]] bool is_due_after(int64_t epoch) const {
    const int64_t every = *options.every_n_epochs;
    return every > 0 && (epoch + 1) % every == 0;
  }
  /// The monitor's value for a checkpoint of `progress`.
  [[nodiscard]] std::optional<double> score(const Progress& progress) const;
  /// Any value is better than none.
  [[nodiscard]] bool is_better(const std::optional<double>& value,
                               const std::optional<double>& other) const {
    return value && (!other || muster::is_better(*value, *other, options.mode));
  }
  [[nodiscard]] Plan plan(const std::optional<double>& score) const;
  [[nodiscard]] std::string new_name(const Progress& progress, const Plan& plan) const;
  [[nodiscard]] const Kept* best() const;
  [[nodiscard]] bool keeps(const std::string& name) const;
  [[nodiscard]] std::string path(const std::string& name) const;
  /// Of the list that was loaded, what lies in this run folder and is this training's stays.
  void go_on(const Training& training);
  /// `must`: also where it is none of the best and `save_last` is off.
  void save(const Progress& progress, const std::optional<double>& score, bool must);

  ModelCheckpointOptions options;
  FilePattern pattern;
  Saved saved{};
  bool loaded = false;  // it goes on from a checkpoint
  std::string run_dir{};
  int64_t epoch = 0;          // of the step that was the last one
  bool within_epoch = false;  // batches are left in it
  bool validated = false;
  /// The step at which an epoch's report had the monitor.
  std::optional<int64_t> reported{};
};

std::optional<double> ModelCheckpoint::State::score(const Progress& progress) const {
  if (options.monitor.empty() || reported != progress.global_step) {
    return std::nullopt;
  }
  return progress.training->metric(options.monitor);
}

ModelCheckpoint::State::Plan ModelCheckpoint::State::plan(
    const std::optional<double>& score) const {
  if (options.save_top_k < 0) {
    return {.stays = true};
  }
  const bool by_age = options.monitor.empty();
  if (!by_age && !score) {
    return {};
  }
  const auto most = static_cast<size_t>(options.save_top_k);
  std::vector<Kept> left = saved.kept;
  Plan plan;
  while (left.size() >= most && !left.empty()) {
    const auto worst = by_age ? left.begin()
                              : std::min_element(left.begin(), left.end(),
                                                 [&](const Kept& one, const Kept& other) {
                                                   return is_better(other.score, one.score);
                                                 });
    if (left.size() == most && !by_age && !is_better(score, worst->score)) {
      return plan;
    }
    plan.displaced.push_back(worst->name);
    left.erase(worst);
  }
  plan.stays = most > 0;
  return plan;
}

std::string ModelCheckpoint::State::new_name(const Progress& progress, const Plan& plan) const {
  const auto is_taken = [&](const std::string& name) {
    return keeps(name) &&
           std::find(plan.displaced.begin(), plan.displaced.end(), name) == plan.displaced.end();
  };
  const std::string plain = pattern.name(epoch, progress.global_step, [&](std::string_view name) {
    return progress.training->metric(name);
  });
  std::string name = plain;
  for (int64_t version = 1; is_taken(name); ++version) {
    name = format("{}-v{}", plain, version);
  }
  return name;
}

const Kept* ModelCheckpoint::State::best() const {
  const Kept* best = nullptr;
  for (const auto& kept : saved.kept) {
    if (is_better(kept.score, best != nullptr ? best->score : std::nullopt)) {
      best = &kept;
    }
  }
  return best;
}

bool ModelCheckpoint::State::keeps(const std::string& name) const {
  return std::any_of(saved.kept.begin(), saved.kept.end(),
                     [&](const Kept& kept) { return kept.name == name; });
}

std::string ModelCheckpoint::State::path(const std::string& name) const {
  return name.empty() ? "" : run_dir + "/checkpoints/" + name + ".ckpt";
}

void ModelCheckpoint::State::go_on(const Training& training) {
  const std::string folder = training.id().empty() ? absolute(run_dir) : "";
  if (!std::exchange(loaded, false) || saved.run_dir != folder) {
    saved = {.run_dir = folder};
  }
  std::erase_if(saved.kept, [&](const Kept& kept) { return !training.had_checkpoint(kept.name); });
  if (!training.had_checkpoint(saved.last)) {
    saved.last.clear();
    saved.step.reset();
  }
}

void ModelCheckpoint::State::save(const Progress& progress, const std::optional<double>& score,
                                  bool must) {
  const Plan plan = this->plan(score);
  if (!plan.stays && !must && !options.save_last) {
    return;
  }
  SaveRequest request{.name = new_name(progress, plan), .remove = plan.displaced};
  if (!saved.last.empty() && !keeps(saved.last)) {
    request.remove.push_back(saved.last);
  }
  std::erase(request.remove, request.name);
  std::erase_if(saved.kept, [&](const Kept& kept) {
    return std::find(plan.displaced.begin(), plan.displaced.end(), kept.name) !=
           plan.displaced.end();
  });
  if (plan.stays) {
    saved.kept.push_back({.name = request.name, .score = score});
  }
  saved.last = request.name;
  saved.step = progress.global_step;
  const Kept* best = this->best();
  request.best = best == nullptr || best->name == request.name;
  // All is set before: the checkpoint holds it.
  progress.training->save(request);
}

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options)
    : state_{std::make_unique<State>(std::move(options))} {}

ModelCheckpoint::~ModelCheckpoint() = default;

std::string ModelCheckpoint::best_model_path() const {
  const Kept* best = state_->best();
  return state_->path(best != nullptr ? best->name : state_->saved.last);
}

std::string ModelCheckpoint::last_model_path() const { return state_->path(state_->saved.last); }

std::optional<double> ModelCheckpoint::best_model_score() const {
  const Kept* best = state_->best();
  return best != nullptr ? best->score : std::nullopt;
}

void ModelCheckpoint::on_start(const Progress& progress) {
  if (progress.stage != Stage::fit) {
    return;
  }
  State& state = *state_;
  state.run_dir = progress.training->run_dir();
  state.go_on(*progress.training);
  state.epoch = progress.epoch;
  state.within_epoch = progress.is_within_epoch();
  state.validated = false;
  state.reported.reset();
}

void ModelCheckpoint::on_batch_end(const Progress& progress) {
  if (progress.stage != Stage::fit) {
    return;
  }
  State& state = *state_;
  state.epoch = progress.epoch;
  state.within_epoch = progress.is_within_epoch();
  const int64_t every = state.options.every_n_train_steps;
  if (every > 0 && progress.global_step % every == 0 && state.saved.step != progress.global_step) {
    const std::string& monitor = state.options.monitor;
    state.save(progress, monitor.empty() ? std::nullopt : progress.training->metric(monitor),
               false);
  }
}

void ModelCheckpoint::on_epoch_end(const Progress& progress, const Report& report) {
  if (progress.training == nullptr) {
    return;
  }
  State& state = *state_;
  const std::string& monitor = state.options.monitor;
  if (!monitor.empty() && names(report, monitor)) {
    state.reported = progress.global_step;
  }
  if (progress.stage != Stage::fit) {
    state.validated = true;
    return;
  }
  if (progress.is_within_epoch()) {
    return;  // cut short: `on_end` saves what there is
  }
  if (!monitor.empty() && state.validated) {
    check_reported(*progress.training, monitor, "ModelCheckpoint");
  }
  state.epoch = progress.epoch;
  if (state.is_due_after(progress.epoch) && state.saved.step != progress.global_step) {
    state.save(progress, state.score(progress), false);
  }
}

void ModelCheckpoint::on_end(const Progress& progress) {
  if (progress.training == nullptr) {
    return;
  }
  State& state = *state_;
  if (state.saved.step == progress.global_step) {
    return;
  }
  if (progress.stage == Stage::fit) {
    state.save(progress, state.score(progress), true);
  } else if (state.within_epoch && state.reported == progress.global_step &&
             state.options.every_n_train_steps == 0 && state.is_due_after(progress.epoch)) {
    state.save(progress, state.score(progress), false);
  }
}

std::string ModelCheckpoint::state_key() const {
  const ModelCheckpointOptions& options = state_->options;
  return format("ModelCheckpoint(monitor={}, mode={}, every_n_train_steps={}, every_n_epochs={})",
                options.monitor, options.mode == MonitorMode::min ? "min" : "max",
                options.every_n_train_steps, *options.every_n_epochs);
}

Value ModelCheckpoint::state() const { return to_value(state_->saved); }

void ModelCheckpoint::load_state(const Value& state) {
  state_->saved = from_value<Saved>(state, "ModelCheckpoint");
  state_->loaded = true;
}

}  // namespace muster
