#include "evaluate_internal.h"
#include "module_internal.h"
#include "seed_internal.h"
#include "step_state_internal.h"
#include "sync_internal.h"

#include <muster/base/format.h>
#include <muster/metrics/metric.h>
#include <muster/proc/rank_report.h>
#include <muster/proc/signals.h>

#include <c10/core/GradMode.h>

#include <algorithm>
#include <ranges>
#include <span>

namespace muster {

namespace {

const BatchLimit& limit_of(Stage stage, const TrainerOptions& options) {
  return stage == Stage::validate ? options.limit_val_batches
         : stage == Stage::test   ? options.limit_test_batches
                                  : options.limit_predict_batches;
}

std::string limit_name(Stage stage) {
  return stage == Stage::validate ? "limit_val_batches"
                                  : format("limit_{}_batches", to_string(stage));
}

std::span<const std::shared_ptr<Callback>> callbacks_of(const Loop& loop) {
  return loop.sanity_batches < 0 ? std::span<const std::shared_ptr<Callback>>{loop.callbacks}
                                 : std::span<const std::shared_ptr<Callback>>{};
}

/// Global batches of a loader at most; INT64_MAX where its end alone tells.
int64_t batches_of(const Pass& pass, const Loop& loop, int64_t loader) {
  const int64_t all =
      limit_of(pass.stage(), loop.options).of(pass.batches(loader), limit_name(pass.stage()));
  return loop.sanity_batches < 0 ? all : std::min(all, loop.sanity_batches);
}

/// As a Progress says it: a stream may end before its limit.
int64_t shown_batches(const Pass& pass, const Loop& loop, int64_t loader) {
  return pass.batches(loader) ? batches_of(pass, loop, loader) : -1;
}

Progress begin_progress(const Pass& pass, const Loop& loop) {
  return {.stage = pass.stage(),
          .epoch = loop.epoch,
          .global_step = loop.global_step,
          .loaders = pass.loaders(),
          .training = loop.training};
}

void run_loader(Pass& pass, Loop& loop, StepState& state, Progress& progress) {
  Step step{state};
  const int world_size = loop.group.size();
  loop.phase.part = Phase::Part::load;
  loop.phase.loader = progress.loader;
  loop.phase.batch = loop.group.rank();
  const int64_t limit = batches_of(pass, loop, progress.loader);
  pass.open(progress.loader,
            {.limit = limit,
             .rank = loop.group.rank(),
             .world_size = world_size,
             .seed = static_cast<uint64_t>(loop.options.seed)},
            batch_dtype(loop.options.precision));
  while (pass.next()) {
    const int64_t batch = pass.batch_idx();
    state.enter_batch(progress.loader, batch, pass.indices());
    report_place({.what = to_string(pass.stage()), .epoch = loop.epoch, .batch = batch});
    seed_for(loop.options.seed, pass.stage(), progress.loader, batch);
    {
      const AutocastGuard autocast{loop.options.precision, state.device};
      pass.batch(step);
    }
    state.ledger.add_samples(static_cast<int64_t>(pass.indices().size()));
    progress.done = std::min(limit, (batch / world_size + 1) * world_size);
    progress.values = state.shown;
    for (const auto& callback : callbacks_of(loop)) {
      callback->on_batch_end(progress);
    }
    loop.phase.part = Phase::Part::load;
    loop.phase.batch = batch + world_size;
    if (stop_requested()) {
      report_stop(stop_signal());  // the others are on their way to the end of their batches
      return;
    }
  }
}

}  // namespace

std::optional<at::ScalarType> batch_dtype(Precision precision) {
  return precision == Precision::f64_true ? std::optional{at::kDouble} : std::nullopt;
}

EpochResult evaluate(Pass& pass, Loop& loop) {
  const c10::AutoGradMode no_grad{false};
  const GeneratorGuard generator;
  const Stage stage = pass.stage();
  loop.group.begin_section(to_string(stage), loop.epoch);
  loop.phase = {.part = Phase::Part::before, .stage = stage, .epoch = loop.epoch};
  for (const auto& [name, metric] : pass.metrics()) {
    metric->reset();
  }
  Ledger ledger;
  StepState state{.group = loop.group,
                  .ledger = ledger,
                  .spool = loop.spool,
                  .run_dir = loop.options.run_dir,
                  .phase = loop.phase,
                  .stage = stage,
                  .epoch = loop.epoch,
                  .global_step = loop.global_step,
                  .loaders = pass.loaders()};
  Step step{state};
  Progress progress = begin_progress(pass, loop);
  const bool is_own_stage = loop.training == nullptr && loop.sanity_batches < 0;

  state.enter_hooks(true);
  seed_for(loop.options.seed, stage, Moment::before, 0);
  for (const auto& callback : callbacks_of(loop)) {
    callback->on_start(progress);
  }
  if (is_own_stage) {
    pass.setup(step);
    convert(pass.module(), loop.options.precision);
    if (!loop.ckpt_path.empty()) {
      load_weights(pass.module(), loop.ckpt_path);
    }
  }
  pass.start(step);
  for (const auto& callback : callbacks_of(loop)) {
    callback->on_epoch_start(progress);
  }
  pass.epoch_start(step);

  for (int64_t loader = 0; loader < pass.loaders(); ++loader) {
    progress.loader = loader;
    progress.batches = shown_batches(pass, loop, loader);
    progress.done = 0;
    if (!stop_requested()) {
      run_loader(pass, loop, state, progress);
    }
  }

  state.enter_hooks(false);
  seed_for(loop.options.seed, stage, Moment::after, 0);
  pass.epoch_end(step);
  pass.end(step);
  if (is_own_stage) {
    pass.teardown(step);
  }

  loop.phase.part = Phase::Part::sync;
  loop.spool.drain(ledger);
  EpochResult result = sync_epoch(loop.group, ledger, pass.metrics(), stop_signal());
  stamp(result, stage, loop.epoch, loop.global_step);
  return result;
}

void end_epoch(const Pass& pass, const Loop& loop, const Report& report) {
  Progress progress = begin_progress(pass, loop);
  progress.loader = std::max<int64_t>(0, pass.loaders() - 1);
  progress.batches = pass.loaders() > 0 ? shown_batches(pass, loop, progress.loader) : 0;
  progress.done = progress.batches;
  const auto callbacks = callbacks_of(loop);
  for (const auto& callback : callbacks) {
    callback->on_epoch_end(progress, report);
  }
  for (const auto& callback : std::ranges::reverse_view(callbacks)) {
    callback->on_end(progress);
  }
}

}  // namespace muster
