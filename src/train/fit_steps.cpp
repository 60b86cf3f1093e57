#include "fit_steps_internal.h"

#include "evaluate_internal.h"
#include "seed_internal.h"

#include <muster/base/check.h>
#include <muster/proc/rank_report.h>
#include <muster/train/gradient_clip.h>
#include <muster/value/tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

namespace muster {

namespace {

/// Places of collectives after the batches of the one round, an epoch's last, in which some ranks
/// have no batch. Those ranks go to the first of them at once and attend what hooks of the others'
/// batches gather; only then does backward begin, which waits for all ranks on other terms.
enum UnevenPlace : int64_t { backward_place = 1, batch_end_place = 2, row_place = 3 };

/// No batch has a number so low: what hooks of a step draw is their own.
constexpr int64_t seed_of_step = -1000;

/// The one number of a loss. On the CPU it is there to be read: through the dispatcher it would
/// cost a small training more than all of the loop around it.
double value_of(const at::Tensor& loss) {
  const bool plain = loss.is_cpu() && loss.has_storage() && !loss.is_neg();
  if (plain && loss.scalar_type() == at::kFloat) {
    return *loss.const_data_ptr<float>();
  }
  if (plain && loss.scalar_type() == at::kDouble) {
    return *loss.const_data_ptr<double>();
  }
  return loss.item<double>();
}

}  // namespace

FitSteps::FitSteps(TrainPass& pass, bool validates, FitContext& context, StepState& state)
    : pass_{pass},
      context_{context},
      state_{state},
      validates_{validates},
      limit_{context.options.limit_train_batches.of(pass.batches(), "limit_train_batches")} {
  if (pass.batches()) {
    batches_ = limit_;
  }
  if (validates && context.options.check_val_every_n_epoch) {
    // To be told before the first step.
    static_cast<void>(context.options.val_check_interval.of(batches_, "val_check_interval"));
  }
  check(batches_ || !validates || context.options.check_val_every_n_epoch,
        "check_val_every_n_epoch null counts batches across epochs, which needs data of a known "
        "size; give check_val_every_n_epoch a number");
}

void FitSteps::begin_epoch(const Position& at) {
  left_loader_ = false;
  opened_at_ = at.batches_done;
  norms_ = SyncedBatchNorms{pass_.module(), context_.group};
  if (batches_ && at.batches_done >= *batches_) {
    return;  // resumed after the epoch's last step
  }
  const TrainerOptions& options = context_.options;
  const bool overfits = !options.overfit_batches.is_zero();
  context_.phase.part = Phase::Part::load;
  context_.phase.batch = at.batches_done + context_.group.rank();
  pass_.open(overfits ? 0 : at.epoch,
             {.limit = limit_,
              .rank = context_.group.rank(),
              .world_size = context_.group.size(),
              .seed = static_cast<uint64_t>(options.seed),
              .first = at.batches_done,
              .shuffle = !overfits},
             batch_dtype(options.precision));
  if (!pass_.has_known_counts()) {
    StepFlags flags;
    look_ahead(flags);
    const std::array<int64_t, 2> mine{flags.more ? 1 : 0, flags.lacks ? 1 : 0};
    const auto all = context_.group.all_reduce(mine, ReduceOp::max);
    more_ = all[0] != 0;
    lacks_ = all[1] != 0;
  }
}

FitSteps::Plan FitSteps::plan(const Position& at) const {
  const int64_t ranks = context_.group.size();
  const int64_t most = ranks * context_.options.accumulate_grad_batches;
  const int64_t end = batches_.value_or(limit_);
  Plan plan{.first = at.batches_done, .end = std::min(end - most, at.batches_done) + most};
  if (!pass_.has_known_counts()) {
    plan.uneven = lacks_;
    return plan;
  }
  int64_t samples = 0;
  for (int64_t k = plan.first; k < plan.end; ++k) {
    samples += pass_.samples_in(k);
  }
  plan.samples = samples;
  plan.uneven = (plan.end - plan.first) % ranks != 0;
  return plan;
}

bool FitSteps::is_logging_step(const Position& at, const Plan& plan) const {
  const int64_t step = at.global_step + 1;
  return step % context_.options.log_every_n_steps == 0 || plan.end == batches_ ||
         step == context_.options.max_steps;
}

bool FitSteps::is_validation_due(const Position& at, const Plan& plan) const {
  if (!validates_) {
    return false;
  }
  const TrainerOptions& options = context_.options;
  if (!options.check_val_every_n_epoch) {
    const int64_t every = std::get<int64_t>(options.val_check_interval.value());
    const int64_t before = at.epoch * *batches_;
    return (before + plan.end) / every > (before + plan.first) / every;
  }
  if ((at.epoch + 1) % *options.check_val_every_n_epoch != 0) {
    return false;
  }
  if (!batches_ && std::holds_alternative<double>(options.val_check_interval.value())) {
    return !has_more(at);
  }
  const int64_t every = options.val_check_interval.of(batches_, "val_check_interval");
  return plan.end / every > plan.first / every;
}

AgreedFlags FitSteps::step(TrainingState& training, bool wants_save) {
  Position& at = training.position;
  const Plan plan = this->plan(at);
  training.logging_step = state_.logging_step = is_logging_step(at, plan);
  context_.phase.step = at.global_step;
  report_place({.what = "fit",
                .epoch = at.epoch,
                .step = at.global_step,
                .batch = at.batches_done + context_.group.rank()});
  if (std::exchange(left_loader_, plan.uneven)) {
    context_.group.begin_section("fit", at.epoch);
  }

  const AgreedFlags agreed = forward_backward(training, plan, wants_save);
  if (agreed.non_finite && context_.options.non_finite_loss == NonFiniteLoss::stop) {
    refuse(at);
  }
  bad_.clear();
  more_ = agreed.more;
  lacks_ = agreed.lacks;
  if (agreed.samples == 0) {
    // Every sample of these batches was skipped: no step was taken.
    at.batches_done = plan.end;
    at.validation_due = is_validation_due(at, plan);
    training.logging_step = false;
    training.zero_grad();
    return agreed;
  }
  finish_step(training, plan, agreed);
  return agreed;
}

void FitSteps::finish_step(TrainingState& training, const Plan& plan, const AgreedFlags& agreed) {
  Position& at = training.position;
  context_.phase.part = Phase::Part::step;
  state_.enter_step(plan.end - 1);
  update_parameters(training, agreed.non_finite);

  at.batches_done = plan.end;
  state_.global_step = ++at.global_step;
  training.last_epoch = at.epoch;
  at.validation_due = is_validation_due(at, plan);
  if (loss_.defined()) {
    if (plan.uneven) {
      context_.group.move_to(batch_end_place, 0);
    }
    state_.leave_step();
    end_batch();
  }
  if (plan.uneven) {
    context_.group.move_to(row_place, 0);
    if (!training.logging_step) {
      // Those without a batch attend what the others' hooks gather: what comes next, buffers and
      // gradients, are collectives that do not wait for that.
      context_.group.barrier();
    }
  }
  if (state_.shown.empty()) {
    progress_.values.assign(1, {"loss", agreed.loss_sum / static_cast<double>(agreed.samples)});
  } else {
    progress_.values = state_.shown;
  }
  for (const auto& callback : context_.callbacks) {
    callback->on_batch_end(progress(training));
  }
}

AgreedFlags FitSteps::forward_backward(TrainingState& training, const Plan& plan, bool wants_save) {
  const int64_t ranks = context_.group.size();
  Ddp& ddp = training.ddp();
  ddp.broadcast_buffers();
  norms_.begin_step(plan.uneven);
  StepFlags flags{.stop = training.stop_reason.has_value(), .save = wants_save};
  AgreedFlags agreed;
  for (int64_t round = plan.first; round < plan.end; round += ranks) {
    const int64_t k = round + context_.group.rank();
    const bool last = round + ranks >= plan.end;
    if (last) {
      ddp.prepare_for_forward();
    }
    at::Tensor loss;
    if (k < plan.end && take_batch(k)) {
      loss = training_step(training.position, k);
      note_loss(loss, k, flags);
    }
    if (last && !plan.samples) {
      look_ahead(flags);
    }
    if (last && plan.uneven) {
      context_.group.move_to(backward_place, 0);
      if (norms_.empty()) {
        context_.group.barrier();
      } else {
        norms_.before_uneven_backward(loss);
      }
    } else if (loss.defined()) {
      norms_.before_backward(loss);
    }
    if (loss.defined()) {
      const auto scaled = training.scaler() != nullptr ? training.scaler()->scale(loss) : loss;
      agreed = ddp.backward(scaled, static_cast<int64_t>(pass_.indices().size()), plan.samples,
                            last, flags);
      loss_ = loss.tensor_data();
      if (!last) {
        end_batch();
      }
    } else if (last) {
      agreed = ddp.backward_without_batch(plan.samples, flags);
    }
  }
  return agreed;
}

bool FitSteps::take_batch(int64_t k) {
  context_.phase.part = Phase::Part::load;
  context_.phase.batch = k;
  const bool taken = pass_.next();
  check(taken ? pass_.batch_idx() == k : !batches_.has_value(), ErrorKind::user,
        "the loader ended before batch {} of {}: a data set keeps its size while it is trained on",
        k, batches_.value_or(-1));
  return taken && !pass_.indices().empty();
}

void FitSteps::note_loss(const at::Tensor& loss, int64_t k, StepFlags& flags) {
  const auto samples = static_cast<int64_t>(pass_.indices().size());
  state_.ledger.add_samples(samples);
  const double value = value_of(loss);
  flags.samples += samples;
  flags.loss_sum += value * static_cast<double>(samples);
  if (!std::isfinite(value)) {
    flags.non_finite = true;
    bad_.push_back({.batch = k, .loss = value, .samples = pass_.indices()});
  }
}

void FitSteps::look_ahead(StepFlags& flags) {
  const int64_t rounds = context_.options.accumulate_grad_batches;
  const Ahead ahead = pass_.look_ahead(rounds);
  flags.more = ahead.rounds > 0;
  flags.lacks = ahead.filled < rounds;
}

at::Tensor FitSteps::training_step(const Position& at, int64_t k) {
  state_.enter_batch(0, k, pass_.indices(), opened_at_);
  seed_for(context_.options.seed, Stage::fit, at.epoch, k);
  Step step{state_};
  pass_.batch_start(step);
  at::Tensor loss;
  {
    const AutocastGuard autocast{context_.options.precision, state_.device};
    const SyncedBatchNorms::Tied tied{norms_};
    loss = pass_.training_step(step);
  }
  if (!loss.defined() || loss.numel() != 1) {
    fail(ErrorKind::usage,
         "training_step gives the loss, one number: the mean over the batch's samples; it gave {}",
         describe(loss));
  }
  return loss;
}

void FitSteps::refuse(const Position& at) {
  Value::List mine;
  for (const auto& bad : bad_) {
    std::string samples;
    for (const int64_t index : bad.samples) {
      samples += format("{}{}", samples.empty() ? "" : ", ", index);
    }
    mine.emplace_back(format("{} on rank {} (batch {}, sample{} {})", bad.loss,
                             context_.group.rank(), bad.batch, bad.samples.size() == 1 ? "" : "s",
                             samples));
  }
  std::string all;
  for (const auto& rank : context_.group.all_gather(to_bytes(std::move(mine)))) {
    for (const auto& text : from_bytes(rank.bytes).as_list()) {
      all += (all.empty() ? "" : ", ") + text.as_string();
    }
  }
  fail(ErrorKind::user,
       "the loss of step {} (epoch {}) is not finite: {}; look at these samples, lower the "
       "learning rate or clip the gradients; --trainer.non_finite_loss skip leaves such steps out",
       at.global_step, at.epoch, all);
}

void FitSteps::update_parameters(TrainingState& training, bool skip) {
  const TrainerOptions& options = context_.options;
  if (GradScaler* scaler = training.scaler()) {
    const bool overflow = scaler->unscale(training.optimized());
    scaler->update(overflow);
    skip = skip || overflow;
  }
  auto& optimizer = training.optimizer();
  if (!skip) {
    // What a hook draws here must not depend on which batches this rank had.
    const Position& at = training.position;
    seed_for(options.seed, Stage::fit, at.epoch, seed_of_step - at.batches_done);
    for (const auto& callback : context_.callbacks) {
      callback->on_before_optimizer_step(progress(training));
    }
    Step step{state_};
    pass_.module().on_before_optimizer_step(optimizer, step);
    if (options.gradient_clip_val) {
      if (options.gradient_clip_algorithm == ClipAlgorithm::norm) {
        clip_grad_norm(training.optimized(), *options.gradient_clip_val);
      } else {
        clip_grad_value(training.optimized(), *options.gradient_clip_val);
      }
    }
    optimizer.step();
  }
  training.zero_grad();
  training.step_schedulers(SchedulerConfig::Interval::step, training.position.global_step + 1);
}

void FitSteps::end_batch() {
  Step step{state_};
  pass_.batch_end(loss_, step);
  loss_ = at::Tensor{};
}

const Progress& FitSteps::progress(TrainingState& training) {
  const Position& at = training.position;
  progress_.stage = Stage::fit;
  progress_.epoch = at.epoch;
  progress_.global_step = at.global_step;
  progress_.batches = batches_.value_or(-1);
  progress_.done = at.batches_done;
  progress_.more = more_;
  progress_.training = &training;
  return progress_;
}

}  // namespace muster
