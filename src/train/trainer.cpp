#include "checkpoint_choice_internal.h"
#include "collect_internal.h"
#include "evaluate_internal.h"
#include "fit_internal.h"
#include "module_internal.h"
#include "progress_bar_internal.h"
#include "run_writer_internal.h"

#include <muster/base/check.h>
#include <muster/base/random_name.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/train/environment.h>
#include <muster/train/model_checkpoint.h>
#include <muster/train/model_summary.h>
#include <muster/train/trainer.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

namespace muster {

namespace fs = std::filesystem;

namespace {

TrainerOptions resolved(TrainerOptions options) {
  check_options(options);
  if (options.run_dir.empty()) {
    options.run_dir = "runs/trainer";
  }
  // A program that changes its folder later still means this one.
  options.run_dir = std::filesystem::absolute(options.run_dir).lexically_normal().string();
  if (!options.overfit_batches.is_zero()) {
    options.limit_train_batches = options.overfit_batches;
    options.limit_val_batches = options.overfit_batches;
  }
  if (const int64_t batches = options.fast_dev_run.batches; batches > 0) {
    options.limit_train_batches = options.limit_val_batches = batches;
    options.limit_test_batches = options.limit_predict_batches = batches;
    options.max_epochs = 1;
    options.max_steps = -1;
    options.num_sanity_val_steps = 0;
    options.val_check_interval = 1.0;
    options.check_val_every_n_epoch = 1;
    options.logger = options.enable_checkpointing = false;
  }
  return options;
}

/// The batches of a loader.
std::string size_text(std::optional<int64_t> batches) {
  return batches ? format("{}", *batches) : "an unknown number";
}

/// The batches of each loader.
std::string sizes_of(const Pass& pass) {
  std::string text;
  for (int64_t loader = 0; loader < pass.loaders(); ++loader) {
    text += (loader == 0 ? "" : ", ") + size_text(pass.batches(loader));
  }
  return text;
}

/// Ranks that see different data would each compute something else: an error. Gives the id that
/// rank 0 has drawn for a training that begins now, which travels along.
std::string begin_together(Group& group, const std::string& sizes) {
  const std::string drawn = random_name();
  const auto all = group.all_gather(drawn + sizes);
  const auto sizes_at = [&](const Contribution& rank) { return rank.bytes.substr(drawn.size()); };
  for (const auto& other : all) {
    check(sizes_at(other) == sizes_at(all[0]), ErrorKind::mismatch,
          "rank 0 has loaders of [{}] batches and rank {} of [{}]; every rank needs the same data "
          "set, of which it is then given its share",
          sizes_at(all[0]), other.rank, sizes_at(other));
  }
  return all[0].bytes.substr(0, drawn.size());
}

template <typename Kind>
bool is(const std::shared_ptr<Callback>& callback) {
  return dynamic_cast<const Kind*>(callback.get()) != nullptr;
}

/// The user's callbacks and those that come by themselves; ModelCheckpoint last, so that it saves
/// what the others have come to.
std::vector<std::shared_ptr<Callback>> callbacks_of_fit(
    std::vector<std::shared_ptr<Callback>> callbacks, const TrainerOptions& options, int rank) {
  if (!options.enable_checkpointing) {
    std::erase_if(callbacks, is<ModelCheckpoint>);
  } else if (std::none_of(callbacks.begin(), callbacks.end(), is<ModelCheckpoint>)) {
    callbacks.push_back(std::make_shared<ModelCheckpoint>());
  }
  if (rank != 0 || !options.enable_model_summary) {
    std::erase_if(callbacks, is<ModelSummary>);
  } else if (std::none_of(callbacks.begin(), callbacks.end(), is<ModelSummary>)) {
    callbacks.push_back(std::make_shared<ModelSummary>());
  }
  std::stable_partition(callbacks.begin(), callbacks.end(),
                        [](const auto& callback) { return !is<ModelCheckpoint>(callback); });
  return callbacks;
}

}  // namespace

struct Trainer::State {
  State(const TrainerOptions& given, Group job)
      : options{resolved(given)},
        group{std::move(job)},
        spool{spool_folder(options.run_dir, group.rank()), cores_of_this_rank()} {
    check(options.devices == 1 || options.devices == group.size(),
          "devices is {}, but the ranks of this job are {}; muster::run starts more, so do "
          "`muster launch` and torchrun, or leave devices out",
          options.devices, group.size());
    if (group.rank() == 0) {
      writer.emplace(options);
      if (options.enable_progress_bar) {
        callbacks.push_back(make_progress_bar());
      }
    }
  }

  TrainerOptions options;
  Group group;
  ImageSpool spool;
  std::vector<std::shared_ptr<Callback>> callbacks;
  std::optional<RunWriter> writer;  // on rank 0
  Phase phase{};
  CheckpointMoment moment{};  ///< of the weights
  std::string fresh_id{};     ///< for a training that begins in this stage; equal on every rank
  int stop_signal = 0;
  std::function<void()> on_failure{};
  int exceptions = std::uncaught_exceptions();
};

Trainer::Trainer(const TrainerOptions& options) : Trainer{options, job_group(options.timeout)} {}

Trainer::Trainer(const TrainerOptions& options, Group group)
    : state_{std::make_unique<State>(options, std::move(group))} {}

Trainer::~Trainer() { close(std::uncaught_exceptions() > state_->exceptions ? 1 : 0); }

void Trainer::close(int exit_code) noexcept {
  if (state_->writer) {
    state_->writer->close(exit_code);
  }
}

void Trainer::log_hyperparameters(const Value& config, const std::string& yaml) {
  if (state_->writer) {
    state_->writer->log_hyperparameters(config, yaml);
  }
}

void Trainer::add_callback(std::shared_ptr<Callback> callback) {
  state_->callbacks.push_back(std::move(callback));
}

const TrainerOptions& Trainer::options() const { return state_->options; }

Group& Trainer::group() { return state_->group; }

int Trainer::stop_signal() const { return state_->stop_signal; }

std::string Trainer::phase() const { return to_string(state_->phase); }

void Trainer::on_failure(std::function<void()> end) { state_->on_failure = std::move(end); }

template <typename Run>
Report Trainer::run_stage(Stage stage, const std::string& sizes, const Run& run) {
  State& state = *state_;
  try {
    state.phase = {.part = Phase::Part::begin, .stage = stage};
    state.spool.clear();
    if (state.writer) {
      state.writer->begin_stage(stage, state.group.size());
    }
    // No rank may write into the folder before rank 0 has cleared it.
    state.group.begin_section("start", 0);
    state.fresh_id = begin_together(state.group, sizes);
    Report report = run();
    state.phase.part = Phase::Part::publish;
    // A rank must not go on, and perhaps end, before what it spooled is in the run.
    state.group.begin_section("end", 0);
    state.group.barrier();
    if (state.writer) {
      state.writer->end_stage();
    }
    state.phase = {};
    return report;
  } catch (...) {
    if (state.on_failure) {
      state.on_failure();
    }
    throw;
  }
}

std::optional<int64_t> Trainer::estimated_steps(std::optional<int64_t> batches) const {
  const TrainerOptions& options = state_->options;
  if (!batches) {
    return options.max_steps >= 0 ? std::optional{options.max_steps} : std::nullopt;
  }
  const int64_t a_step = options.accumulate_grad_batches * state_->group.size();
  const int64_t taken = options.limit_train_batches.of(batches, "limit_train_batches");
  const int64_t epochs = most_epochs(options);
  const int64_t an_epoch = (taken + a_step - 1) / a_step;
  const bool bounded = epochs < INT64_MAX;
  if (options.max_steps >= 0) {
    return bounded ? std::min(options.max_steps, epochs * an_epoch) : options.max_steps;
  }
  return bounded ? std::optional{epochs * an_epoch} : std::nullopt;
}

Report Trainer::evaluate(Pass& pass, const std::string& given,
                         const std::function<void()>& at_end) {
  return run_stage(pass.stage(), sizes_of(pass), [&] {
    State& state = *state_;
    const std::string ckpt_path = choose_checkpoint(state.group, state.options.run_dir, given);
    if (!ckpt_path.empty()) {
      state.moment = checkpoint_moment(ckpt_path).value_or(CheckpointMoment{});
    }
    Loop loop{.options = state.options,
              .group = state.group,
              .spool = state.spool,
              .callbacks = state.callbacks,
              .phase = state.phase,
              .epoch = state.moment.epoch,
              .global_step = state.moment.global_step,
              .ckpt_path = ckpt_path};
    EpochResult result = muster::evaluate(pass, loop);
    state.stop_signal = result.stop_signal;
    if (result.stop_signal != 0) {  // part of the data is no result
      return std::move(result.report);
    }
    end_epoch(pass, loop, result.report);
    state.phase.part = Phase::Part::publish;
    if (state.writer) {
      state.writer->publish(result);
    }
    if (at_end) {
      at_end();
    }
    return std::move(result.report);
  });
}

Report Trainer::fit(TrainPass& pass, Pass* validation, const std::string& given) {
  const std::string sizes = "training " + size_text(pass.batches()) +
                            (validation != nullptr ? "; validation " + sizes_of(*validation) : "");
  return run_stage(Stage::fit, sizes, [&] {
    State& state = *state_;
    const FitStart start = choose_start(state.group, state.options.run_dir, given, state.fresh_id);
    auto callbacks = callbacks_of_fit(state.callbacks, state.options, state.group.rank());
    FitResult result = muster::fit(pass, validation,
                                   {.options = state.options,
                                    .start = start,
                                    .group = state.group,
                                    .spool = state.spool,
                                    .callbacks = callbacks,
                                    .phase = state.phase,
                                    .writer = state.writer ? &*state.writer : nullptr});
    state.moment = {.global_step = result.report.step, .epoch = result.last_epoch};
    state.stop_signal = result.stop_signal;
    return std::move(result.report);
  });
}

fs::path Trainer::output_path(bool stays) const {
  const State& state = *state_;
  const fs::path run_dir = state.options.run_dir;
  return stays ? run_dir / "prediction_shards" /
                     format("rank-{}-of-{}", state.group.rank(), state.group.size())
               : spool_folder(run_dir, state.group.rank()) / "outputs";
}

void Trainer::predict(Pass& pass, PredictionShardWriter& mine, const std::string& ckpt_path,
                      ReturnPredictions to,
                      const std::function<void(const PredictionKey&, std::string_view)>& sink) {
  Group& group = state_->group;
  const bool wants = to == ReturnPredictions::all || group.rank() == 0;
  evaluate(pass, ckpt_path, [&] {
    mine.close();
    group.begin_section("outputs", 0);
    collect_in_order(group, PredictionShard{mine.path()}, wants ? sink : nullptr);
  });
}

std::vector<fs::path> Trainer::predict(Pass& pass, PredictionShardWriter& mine,
                                       const std::string& ckpt_path) {
  evaluate(pass, ckpt_path, [&] { mine.close(); });
  std::vector<fs::path> shards;
  const int ranks = state_->group.size();
  shards.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    shards.push_back(mine.path().parent_path() / format("rank-{}-of-{}", rank, ranks));
  }
  return shards;
}

}  // namespace muster
