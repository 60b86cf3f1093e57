#include "fit_internal.h"

#include "evaluate_internal.h"
#include "fit_log_internal.h"
#include "fit_steps_internal.h"
#include "module_internal.h"
#include "replicas_internal.h"
#include "seed_internal.h"
#include "training_state_internal.h"

#include <muster/base/format.h>
#include <muster/proc/rank_report.h>
#include <muster/proc/signals.h>
#include <muster/train/trainer.h>

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ranges>
#include <utility>

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

bool validates(const TrainerOptions& options, const Pass* validation) {
  return validation != nullptr && validation->loaders() > 0 && !options.limit_val_batches.is_zero();
}

std::optional<Clock::time_point> deadline_of(const TrainerOptions& options) {
  if (options.max_time.empty()) {
    return std::nullopt;
  }
  const std::chrono::duration<double> seconds{parse_time(options.max_time, "trainer.max_time")};
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
}

/// A training that goes on at an epoch's end may have another seed, but not unnoticed.
void tell_other_seed(std::optional<int64_t> saved, int64_t seed) {
  if (!saved || *saved == seed) return;
  std::fprintf(stderr,
               "muster: the checkpoint's training was seeded with %lld, this one with %lld: the "
               "order of samples from here on, and all chance, is another one than that of a "
               "training that never stopped\n",
               static_cast<long long>(*saved), static_cast<long long>(seed));
}

/// By the name of the signal that was sent, where the launcher has made SIGTERM of it.
std::string reason_of(int signal) {
  const int sent = signal == SIGTERM ? launchers_stop_signal() : 0;
  return format("SIG{} came", sigabbrev_np(sent != 0 ? sent : signal));
}

class Fit {
 public:
  Fit(TrainPass& pass, Pass* validation, FitContext& context)
      : pass_{pass},
        validation_{validates(context.options, validation) ? validation : nullptr},
        context_{context},
        log_{context, pass.module().metrics()},
        steps_{pass, validation_ != nullptr, context, log_.state()},
        max_epochs_{most_epochs(context.options)},
        deadline_{deadline_of(context.options)} {}

  /// The loop: all that a training does, in the order in which it does it.
  FitResult run(const std::string& ckpt_path) {
    begin(ckpt_path);
    while (!is_finished()) {
      begin_epoch();
      while (steps_.has_more(training_->position) && !is_finished()) {
        take_step();
        if (training_->position.validation_due && !told_to_stop_) {
          validate();
        }
      }
      end_epoch();
    }
    return end();
  }

 private:
  void begin(const std::string& ckpt_path);
  void begin_epoch();
  void take_step();
  void validate();
  void end_epoch();
  FitResult end();

  void hook(bool before, void (ModuleBase::*hook)(Step&)) {
    log_.hook(before, training_ ? training_->position : Position{},
              [&](Step& step) { (pass_.module().*hook)(step); });
  }
  void load(const std::string& ckpt_path, bool resumes);
  /// What a checkpoint keeps of the log: within an epoch all of it. All ranks.
  Value collect_log();
  void restore_log(const std::string& ckpt_path);
  void sanity_check();
  Loop evaluation();
  [[nodiscard]] bool is_finished() const;
  /// All ranks stop when one wants to. Once an epoch and a validation; within an epoch the wish
  /// travels with the gradients.
  void agree_on_stop();
  /// `signal`: the one that some rank has had, or 0.
  void say_why_stopped(int signal) const;

  TrainPass& pass_;
  Pass* validation_;
  FitContext& context_;
  FitLog log_;
  FitSteps steps_;
  int64_t max_epochs_;
  std::optional<Clock::time_point> deadline_;
  std::optional<TrainingState> training_{};
  bool stopped_ = false;
  bool told_to_stop_ = false;  ///< by a signal: there is little time
  /// The save of the step before was asked for by other ranks alone: the launcher passes SIGUSR1 to
  /// each, some see it a step later, and that save answers it.
  bool answered_ = false;
};

bool Fit::is_finished() const {
  const Position& at = training_->position;
  const int64_t max_steps = context_.options.max_steps;
  return stopped_ || at.epoch >= max_epochs_ || (max_steps >= 0 && at.global_step >= max_steps) ||
         steps_.has_no_data();
}

void Fit::begin(const std::string& ckpt_path) {
  context_.group.begin_section("fit", 0);
  hook(true, &ModuleBase::setup);
  convert(pass_.module(), context_.options.precision);
  training_.emplace(pass_.module(), context_);
  training_->collect_log = [this] { return collect_log(); };
  const bool resumes = !ckpt_path.empty() && !std::filesystem::is_regular_file(ckpt_path);
  load(ckpt_path, resumes);
  hook(true, &ModuleBase::on_fit_start);
  for (const auto& callback : context_.callbacks) {
    callback->on_start(steps_.progress(*training_));
  }
  if (!resumes) {
    sanity_check();
  } else {
    restore_log(ckpt_path);
    if (training_->position.validation_due && validation_ != nullptr) {
      validate();
    }
  }
  Position& at = training_->position;
  at.validation_due = at.validation_due && told_to_stop_;
  if (at.epoch_ended) {
    at = {.epoch = at.epoch + 1, .global_step = at.global_step};
  }
  if (!resumes && context_.writer != nullptr) {
    context_.writer->begin_training();
  }
  context_.group.begin_section("fit", at.epoch);
  hook(true, &ModuleBase::on_train_start);
}

void Fit::load(const std::string& ckpt_path, bool resumes) {
  training_->epoch_contents =
      Value::Dict{{"seed", context_.options.seed},
                  {"batches", steps_.batches().value_or(-1)},
                  {"batch_size", pass_.batch_size()},
                  {"shards", pass_.is_sharded() ? context_.group.size() : 1}};
  if (!resumes) {
    if (!ckpt_path.empty()) {
      load_weights(pass_.module(), ckpt_path);
    }
    return;
  }
  training_->load(ckpt_path);
  check_same_checkpoint(context_.group, ckpt_path);
  if (context_.writer != nullptr) {
    const Position& at = training_->position;
    std::fprintf(stderr, "muster: going on from %s: epoch %lld, step %lld\n", ckpt_path.c_str(),
                 static_cast<long long>(at.epoch), static_cast<long long>(at.global_step));
    tell_other_seed(training_->loaded_seed, context_.options.seed);
  }
}

Value Fit::collect_log() {
  const Value run = context_.writer != nullptr ? context_.writer->state() : Value{};
  const Position& at = training_->position;
  if (at.batches_done == 0 || at.epoch_ended) {
    return Value::Dict{{"run", run}};
  }
  return log_.collect(run);
}

void Fit::restore_log(const std::string& ckpt_path) {
  TrainingState& training = *training_;
  const Value& log = training.loaded_log;
  if (context_.writer == nullptr) {
    training.loaded_log = {};
  } else {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const bool is_own = fs::equivalent(fs::path{ckpt_path} / "..",
                                       fs::path{context_.options.run_dir} / "checkpoints", ignored);
    context_.writer->continue_training(training.latest(true), log.at("run"),
                                       training.position.global_step, is_own);
    if (log.find("row") != nullptr) {
      log_.restore_row(log);
    }
  }
  if (std::exchange(training.logging_step, false) && training.position.batches_done > 0) {
    log_.write_row(training);
  }
}

Loop Fit::evaluation() {
  log_.take_images();
  return {.options = context_.options,
          .group = context_.group,
          .spool = context_.spool,
          .callbacks = context_.callbacks,
          .phase = context_.phase,
          .epoch = training_->position.epoch,
          .global_step = training_->position.global_step,
          .training = &*training_};
}

void Fit::sanity_check() {
  const int64_t batches = context_.options.num_sanity_val_steps;
  if (validation_ == nullptr || batches == 0) {
    return;
  }
  Loop loop = evaluation();
  loop.training = nullptr;
  loop.sanity_batches = batches < 0 ? INT64_MAX : batches;
  static_cast<void>(evaluate(*validation_, loop));
  for (const auto& [name, metric] : validation_->metrics()) {
    metric->reset();
  }
}

void Fit::begin_epoch() {
  const Position& at = training_->position;
  context_.group.begin_section("fit", at.epoch);
  training_->forget_kept_log();
  log_.begin_epoch();
  for (const auto& callback : context_.callbacks) {
    callback->on_epoch_start(steps_.progress(*training_));
  }
  hook(true, &ModuleBase::on_train_epoch_start);
  if (const Value log = std::exchange(training_->loaded_log, {}); log.find("epoch") != nullptr) {
    log_.restore_epoch(log);
  }
  steps_.begin_epoch(at);
  if (at.batches_done == 0 && !steps_.has_more(at)) {
    training_->stop(format("the training data gave no batch in epoch {}", at.epoch));
    stopped_ = true;
  }
}

void Fit::take_step() {
  training_->poll_saves();
  if (deadline_ && Clock::now() >= *deadline_) {
    training_->stop("max_time is over");
  }
  const int signal = stop_signal();
  if (signal != 0) {
    training_->stop(reason_of(signal));
  }
  // A stop that goes with a wish to save is a signal's.
  const bool is_asked_to_save = take_save_request() && !answered_;
  const AgreedFlags agreed = steps_.step(*training_, signal != 0 || is_asked_to_save);
  answered_ = agreed.save && !is_asked_to_save;
  stopped_ = stopped_ || agreed.stop;
  told_to_stop_ = agreed.stop && agreed.save;
  if (agreed.save && !agreed.stop) {
    const Position& at = training_->position;
    training_->save({.name = format("epoch={}-step={}", at.epoch, at.global_step)});
  }
  const int64_t every = context_.options.check_weights_every_n_steps;
  if (every > 0 && training_->position.global_step % every == 0) {
    check_equal_parameters(context_.group, training_->parameters(),
                           training_->position.global_step);
  }
  if (std::exchange(training_->logging_step, false)) {
    log_.write_row(*training_);
  }
}

void Fit::validate() {
  TrainingState& training = *training_;
  training.position.validation_due = false;
  training.ddp().broadcast_buffers();  // each rank's were of its own batches
  SavedMetrics of_training{validation_->metrics()};
  Loop loop = evaluation();
  EpochResult result = evaluate(*validation_, loop);
  of_training.restore();
  if (result.stop_signal != 0) {  // a training that goes on begins with this validation
    training.position.validation_due = true;
    training.stop(reason_of(result.stop_signal));
    stopped_ = told_to_stop_ = true;
    context_.phase.stage = Stage::fit;
    return;
  }
  training.update(result.report);
  muster::end_epoch(*validation_, loop, result.report);
  if (context_.writer != nullptr) {
    context_.phase.part = Phase::Part::publish;
    context_.writer->publish(result);
  }
  agree_on_stop();
  context_.group.begin_section("fit", training.position.epoch);
  context_.phase.stage = Stage::fit;
}

void Fit::end_epoch() {
  TrainingState& training = *training_;
  Position& at = training.position;
  if (at.batches_done > 0 && (steps_.has_more(at) || at.validation_due)) {
    training.keep_log();
  }
  hook(false, &ModuleBase::on_train_epoch_end);
  at.epoch_ended = !steps_.has_more(at) && !at.validation_due;
  const Report report = log_.end_epoch(training);
  if (at.epoch_ended) {
    training.step_schedulers(SchedulerConfig::Interval::epoch, at.epoch + 1);
  }
  for (const auto& callback : context_.callbacks) {
    callback->on_epoch_end(steps_.progress(training), report);
  }
  agree_on_stop();
  if (at.epoch_ended) {
    at = {.epoch = at.epoch + 1, .global_step = at.global_step};
  }
}

void Fit::agree_on_stop() {
  const std::array<int64_t, 1> mine{training_->stop_reason ? 1 : 0};
  stopped_ = context_.group.all_reduce(mine, ReduceOp::max)[0] != 0 || stopped_;
}

FitResult Fit::end() {
  const Position& at = training_->position;
  context_.group.begin_section("fit", at.epoch);
  training_->ddp().broadcast_buffers();  // what follows must not depend on the rank
  hook(false, &ModuleBase::on_train_end);
  for (const auto& callback : std::ranges::reverse_view(context_.callbacks)) {
    callback->on_end(steps_.progress(*training_));
  }
  training_->finish_saves();
  hook(false, &ModuleBase::on_fit_end);
  hook(false, &ModuleBase::teardown);
  log_.finish(*training_);
  const std::array<int64_t, 1> mine{stopped_ ? stop_signal() : 0};
  const int signal = static_cast<int>(context_.group.all_reduce(mine, ReduceOp::max)[0]);
  if (stopped_ && context_.writer != nullptr) {
    say_why_stopped(signal);
  }
  Report report{
      .stage = std::string{to_string(Stage::fit)}, .epoch = at.epoch, .step = at.global_step};
  report.metrics = training_->latest(false);
  return {.report = std::move(report), .last_epoch = training_->last_epoch, .stop_signal = signal};
}

void Fit::say_why_stopped(int signal) const {
  const bool can_go_on = told_to_stop_ && context_.options.enable_checkpointing;
  // Of a signal to all ranks, this one's may come last.
  const std::string of_others = signal != 0 ? reason_of(signal) : "another rank was told to";
  std::fprintf(stderr, "muster: training stopped after %lld steps: %s%s\n",
               static_cast<long long>(training_->position.global_step),
               training_->stop_reason.value_or(of_others).c_str(),
               can_go_on ? "; --ckpt_path last goes on from here" : "");
}

}  // namespace

FitResult fit(TrainPass& pass, Pass* validation, FitContext context) {
  const c10::AutoGradMode gradients{true};
  const GeneratorGuard generator;
  std::optional<torch::autograd::DetectAnomalyGuard> anomalies;
  if (context.options.detect_anomaly) anomalies.emplace();
  return Fit{pass, validation, context}.run(context.start.ckpt_path);
}

}  // namespace muster
