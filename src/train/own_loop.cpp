#include <muster/train/own_loop.h>

#include "evaluate_internal.h"
#include "run_writer_internal.h"
#include "seed_internal.h"
#include "step_state_internal.h"
#include "sync_internal.h"

#include <muster/base/check.h>
#include <muster/train/environment.h>

#include <exception>
#include <filesystem>
#include <optional>

namespace muster {

namespace fs = std::filesystem;

namespace {

TrainerOptions options_of(const OwnLoopOptions& options) {
  check(!options.run_dir.empty(), "run_dir is empty; name the folder that the run is written to");
  TrainerOptions out{.run_dir = fs::absolute(options.run_dir).lexically_normal().string(),
                     .logger = options.logger};
  out.project = options.project;
  out.seed = options.seed;
  return out;
}

}  // namespace

struct OwnLoop::State {
  State(Group job, const OwnLoopOptions& given)
      : options{options_of(given)},
        group{std::move(job)},
        spool{spool_folder(options.run_dir, group.rank()), cores_of_this_rank()} {
    if (group.rank() == 0) {
      writer.emplace(options);
    }
  }

  TrainerOptions options;
  Group group;
  ImageSpool spool;
  std::optional<RunWriter> writer{};  ///< on rank 0
  Phase phase{};
  Ledger ledger{};
  std::optional<StepState> epoch{};
  int exceptions = std::uncaught_exceptions();
};

OwnLoop::OwnLoop(Group group, const OwnLoopOptions& options)
    : state_{std::make_unique<State>(std::move(group), options)} {}

OwnLoop::~OwnLoop() {
  if (state_->writer) {
    state_->writer->close(std::uncaught_exceptions() > state_->exceptions ? 1 : 0);
  }
}

Group& OwnLoop::group() { return state_->group; }

void OwnLoop::begin_epoch(Stage stage, int64_t epoch, int64_t global_step, int64_t loaders) {
  State& state = *state_;
  check(stage != Stage::fit, "an OwnLoop evaluates; a training's rows are the Trainer's");
  check(!state.epoch.has_value(), "the epoch before has not ended: call end_epoch first");
  state.spool.clear();
  state.ledger = Ledger{};
  if (state.writer) {
    state.writer->begin_stage(stage, state.group.size());
  }
  // No rank may write into the folder before rank 0 has cleared it.
  state.group.begin_section("start", 0);
  state.group.barrier();
  state.group.begin_section(to_string(stage), epoch);
  state.phase = {.part = Phase::Part::before, .stage = stage, .epoch = epoch};
  state.epoch.emplace(StepState{.group = state.group,
                                .ledger = state.ledger,
                                .spool = state.spool,
                                .run_dir = state.options.run_dir,
                                .phase = state.phase,
                                .stage = stage,
                                .epoch = epoch,
                                .global_step = global_step,
                                .loaders = loaders});
}

Share OwnLoop::share() const {
  return {.rank = state_->group.rank(),
          .world_size = state_->group.size(),
          .seed = static_cast<uint64_t>(state_->options.seed)};
}

Step OwnLoop::at(int64_t batch_idx, const std::vector<int64_t>& indices, int64_t loader) {
  State& state = *state_;
  check(state.epoch.has_value(), "a batch is within an epoch: call begin_epoch first");
  state.epoch->enter_batch(loader, batch_idx, indices);
  state.ledger.add_samples(static_cast<int64_t>(indices.size()));
  seed_for(state.options.seed, state.epoch->stage, loader, batch_idx);
  return Step{*state.epoch};
}

Step OwnLoop::after_batches() {
  State& state = *state_;
  check(state.epoch.has_value(), "there is no epoch: call begin_epoch first");
  state.epoch->enter_hooks(false);
  return Step{*state.epoch};
}

Report OwnLoop::end_epoch(const std::vector<std::pair<std::string, Metric*>>& metrics) {
  State& state = *state_;
  static_cast<void>(after_batches());
  const StepState& epoch = *state.epoch;
  state.spool.drain(state.ledger);
  EpochResult result = sync_epoch(state.group, state.ledger, metrics);
  stamp(result, epoch.stage, epoch.epoch, epoch.global_step);
  if (state.writer) {
    state.writer->publish(result);
  }
  // A rank must not go on, and perhaps end, before what it spooled is in the run.
  state.group.begin_section("end", 0);
  state.group.barrier();
  if (state.writer) {
    state.writer->end_stage();
  }
  state.epoch.reset();
  return std::move(result.report);
}

}  // namespace muster
