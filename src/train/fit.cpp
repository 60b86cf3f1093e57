#include "fit_internal.h"

#include "evaluate_internal.h"
#include "fit_log_internal.h"
#include "fit_steps_internal.h"
#include "seed_internal.h"
#include "training_state_internal.h"

#include <muster/base/format.h>
#include <muster/proc/signals.h>
#include <muster/train/trainer.h>

#include <c10/core/GradMode.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <ranges>
#include <utility>
#include <variant>

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

bool validates(const TrainerOptions& options, const Pass* validation) {
  const auto& limit = options.limit_val_batches.value();
  return validation != nullptr && validation->loaders() > 0 &&
         std::visit([](auto value) { return value != 0; }, limit);
}

std::optional<Clock::time_point> deadline_of(const TrainerOptions& options) {
  if (options.max_time.empty()) {
    return std::nullopt;
  }
  const std::chrono::duration<double> seconds{parse_time(options.max_time, "trainer.max_time")};
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
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
      while (training_->position.batches_done < steps_.batches() && !is_finished()) {
        take_step();
        if (training_->position.validation_due) {
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
  void sanity_check();
  Loop evaluation();
  [[nodiscard]] bool is_finished() const;
  /// All ranks stop when one wants to. Once an epoch and a validation; within an epoch the wish
  /// travels with the gradients.
  void agree_on_stop();

  TrainPass& pass_;
  Pass* validation_;
  FitContext& context_;
  FitLog log_;
  FitSteps steps_;
  int64_t max_epochs_;
  std::optional<Clock::time_point> deadline_;
  std::optional<TrainingState> training_{};
  bool stopped_ = false;
  bool saved_on_signal_ = false;
};

bool Fit::is_finished() const {
  const Position& at = training_->position;
  const int64_t max_steps = context_.options.max_steps;
  return stopped_ || at.epoch >= max_epochs_ || (max_steps >= 0 && at.global_step >= max_steps) ||
         steps_.batches() == 0;
}

void Fit::begin(const std::string& ckpt_path) {
  context_.group.begin_section("fit", 0);
  hook(true, &ModuleBase::setup);
  training_.emplace(pass_.module(), context_);
  const bool resumes = !ckpt_path.empty() && !std::filesystem::is_regular_file(ckpt_path);
  if (resumes) {
    training_->load(ckpt_path);
  } else if (!ckpt_path.empty()) {
    load_weights(pass_.module(), ckpt_path);
  }
  hook(true, &ModuleBase::on_fit_start);
  for (const auto& callback : context_.callbacks) {
    callback->on_start(steps_.progress(*training_));
  }
  if (!resumes) {
    sanity_check();
  } else if (training_->position.validation_due && validation_ != nullptr) {
    validate();
  }
  Position& at = training_->position;
  at.validation_due = false;
  if (at.epoch_ended) {
    at = {.epoch = at.epoch + 1, .global_step = at.global_step};
  }
  context_.group.begin_section("fit", at.epoch);
  hook(true, &ModuleBase::on_train_start);
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
  log_.begin_epoch();
  for (const auto& callback : context_.callbacks) {
    callback->on_epoch_start(steps_.progress(*training_));
  }
  hook(true, &ModuleBase::on_train_epoch_start);
  steps_.begin_epoch(at);
}

void Fit::take_step() {
  if (deadline_ && Clock::now() >= *deadline_) {
    training_->stop("max_time is over");
  }
  const int signal = stop_signal();
  if (signal != 0 && signal != SIGUSR1) {
    training_->stop(format("SIG{} came", sigabbrev_np(signal)));
  }
  const bool wants_save = signal == SIGUSR1 && !std::exchange(saved_on_signal_, true);
  const AgreedFlags agreed = steps_.step(*training_, wants_save);
  stopped_ = stopped_ || agreed.stop;
  if (agreed.save) {
    const Position& at = training_->position;
    training_->save({.name = format("epoch={}-step={}", at.epoch, at.global_step)});
  }
  if (training_->logging_step) {
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
  training.update(result.report);
  muster::end_epoch(*validation_, loop, result.report);
  if (context_.writer != nullptr) {
    context_.phase.part = Phase::Part::publish;
    context_.writer->publish(result);
  }
  agree_on_stop();
  context_.group.begin_section("fit", training.position.epoch);
}

void Fit::end_epoch() {
  TrainingState& training = *training_;
  Position& at = training.position;
  hook(false, &ModuleBase::on_train_epoch_end);
  at.epoch_ended = at.batches_done >= steps_.batches();
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
  hook(false, &ModuleBase::on_train_end);
  for (const auto& callback : std::ranges::reverse_view(context_.callbacks)) {
    callback->on_end(steps_.progress(*training_));
  }
  hook(false, &ModuleBase::on_fit_end);
  hook(false, &ModuleBase::teardown);
  log_.finish(*training_);
  if (stopped_ && context_.writer != nullptr) {
    std::fprintf(stderr, "muster: training stopped after %lld steps: %s\n",
                 static_cast<long long>(at.global_step),
                 training_->stop_reason.value_or("another rank was told to").c_str());
  }
  const int mine = stop_signal();
  const std::array<int64_t, 1> signal{mine == SIGUSR1 ? 0 : mine};
  Report report{
      .stage = std::string{to_string(Stage::fit)}, .epoch = at.epoch, .step = at.global_step};
  report.metrics = training_->latest();
  return {.report = std::move(report),
          .stop_signal = static_cast<int>(context_.group.all_reduce(signal, ReduceOp::max)[0])};
}

}  // namespace

FitResult fit(TrainPass& pass, Pass* validation, const std::string& ckpt_path, FitContext context) {
  const c10::AutoGradMode gradients{true};
  const GeneratorGuard generator;
  return Fit{pass, validation, context}.run(ckpt_path);
}

}  // namespace muster
