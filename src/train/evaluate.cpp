#include "evaluate_internal.h"
#include "seed_internal.h"
#include "step_state_internal.h"
#include "sync_internal.h"

#include <muster/base/format.h>
#include <muster/base/random.h>
#include <muster/metrics/metric.h>

#include <c10/core/GradMode.h>

#include <algorithm>

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

/// The same random numbers for a batch whichever rank has it.
void seed_for(const Loop& loop, Stage stage, int64_t loader, int64_t batch) {
  seed_torch(mix_key({static_cast<uint64_t>(loop.options.seed), static_cast<uint64_t>(stage),
                      static_cast<uint64_t>(loader), static_cast<uint64_t>(batch)}));
}

void run_loader(Pass& pass, Loop& loop, StepState& state, Progress& progress) {
  Step step{state};
  const int world_size = loop.group.size();
  loop.phase.part = Phase::Part::load;
  loop.phase.loader = progress.loader;
  loop.phase.batch = loop.group.rank();
  pass.open(progress.loader, {.limit = progress.batches,
                              .rank = loop.group.rank(),
                              .world_size = world_size,
                              .seed = static_cast<uint64_t>(loop.options.seed)});
  while (pass.next()) {
    const int64_t batch = pass.batch_idx();
    state.enter_batch(progress.loader, batch, pass.indices());
    seed_for(loop, pass.stage(), progress.loader, batch);
    pass.batch(step);
    state.ledger.add_samples(static_cast<int64_t>(pass.indices().size()));
    progress.done = std::min(progress.batches, (batch / world_size + 1) * world_size);
    progress.values = state.shown;
    for (const auto& callback : loop.callbacks) {
      callback->on_batch_end(progress);
    }
    loop.phase.part = Phase::Part::load;
    loop.phase.batch = batch + world_size;
  }
}

}  // namespace

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
  Progress progress{.stage = stage, .epoch = loop.epoch, .loaders = pass.loaders()};

  state.enter_hooks(true);
  seed_for(loop, stage, Moment::before, 0);
  pass.setup(step);
  pass.start(step);
  for (const auto& callback : loop.callbacks) {
    callback->on_epoch_start(progress);
  }
  pass.epoch_start(step);

  for (int64_t loader = 0; loader < pass.loaders(); ++loader) {
    progress.loader = loader;
    progress.batches = limit_of(stage, loop.options).of(pass.batches(loader), limit_name(stage));
    progress.done = 0;
    run_loader(pass, loop, state, progress);
  }

  state.enter_hooks(false);
  seed_for(loop, stage, Moment::after, 0);
  pass.epoch_end(step);
  pass.end(step);
  pass.teardown(step);

  loop.phase.part = Phase::Part::sync;
  loop.spool.drain(ledger);
  EpochResult result = sync_epoch(loop.group, ledger, pass.metrics());
  result.report.stage = to_string(stage);
  result.report.epoch = loop.epoch;
  result.report.step = loop.global_step;
  for (auto& table : result.tables) {
    table.stage = result.report.stage;
  }
  progress.done = progress.batches;
  for (const auto& callback : loop.callbacks) {
    callback->on_epoch_end(progress, result.report);
  }
  return result;
}

}  // namespace muster
