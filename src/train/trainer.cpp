#include "collect_internal.h"
#include "evaluate_internal.h"
#include "progress_bar_internal.h"
#include "run_writer_internal.h"

#include <muster/base/check.h>
#include <muster/train/environment.h>
#include <muster/train/trainer.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

namespace muster {

namespace {

TrainerOptions resolved(TrainerOptions options) {
  check_options(options);
  if (options.run_dir.empty()) {
    options.run_dir = "runs/trainer";
  }
  return options;
}

}  // namespace

struct Trainer::State {
  State(const TrainerOptions& given, Group job)
      : options{resolved(given)},
        group{std::move(job)},
        spool{std::filesystem::path{options.run_dir} / "spool" / format("rank-{}", group.rank()),
              cores_of_this_rank()} {
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
  std::function<void()> on_failure{};
  int exceptions = std::uncaught_exceptions();
};

Trainer::Trainer(const TrainerOptions& options) : Trainer{options, job_group(options.timeout)} {}

Trainer::Trainer(const TrainerOptions& options, Group group)
    : state_{std::make_unique<State>(options, std::move(group))} {}

Trainer::~Trainer() { close(std::uncaught_exceptions() > state_->exceptions ? 1 : 0); }

void Trainer::close(int exit_code) noexcept {
  if (!state_->writer) {
    return;
  }
  try {
    state_->writer->finish(exit_code);
  } catch (const std::exception& error) {
    // What was logged before is on the disk already.
    std::fprintf(stderr, "muster: the loggers were not closed: %s\n", error.what());
  }
}

void Trainer::log_hyperparameters(const Value& config) {
  if (state_->writer) {
    state_->writer->log_hyperparameters(config);
  }
}

void Trainer::add_callback(std::shared_ptr<Callback> callback) {
  state_->callbacks.push_back(std::move(callback));
}

const TrainerOptions& Trainer::options() const { return state_->options; }

Group& Trainer::group() { return state_->group; }

std::string Trainer::phase() const { return to_string(state_->phase); }

void Trainer::on_failure(std::function<void()> end) { state_->on_failure = std::move(end); }

Report Trainer::evaluate(Pass& pass) {
  try {
    return run_stage(pass);
  } catch (...) {
    if (state_->on_failure) {
      state_->on_failure();
    }
    throw;
  }
}

Report Trainer::run_stage(Pass& pass) {
  State& state = *state_;
  state.phase = {.part = Phase::Part::begin, .stage = pass.stage()};
  state.spool.clear();
  if (state.writer) {
    state.writer->begin_stage(pass.stage(), state.group.size());
  }
  // No rank may write into the folder before rank 0 has cleared it.
  state.group.begin_section("start", 0);
  state.group.barrier();

  Loop loop{.options = state.options,
            .group = state.group,
            .spool = state.spool,
            .callbacks = state.callbacks,
            .phase = state.phase};
  EpochResult result = muster::evaluate(pass, loop);
  state.phase.part = Phase::Part::publish;
  if (state.writer) {
    state.writer->publish(result);
  }
  // A rank must not go on, and perhaps end, before what it spooled is in the run.
  state.group.barrier();
  state.phase = {};
  return std::move(result.report);
}

std::vector<std::string> Trainer::collect(const std::vector<KeyedOutput>& mine,
                                          ReturnPredictions to) {
  return collect_in_order(state_->group, mine,
                          to == ReturnPredictions::all || state_->group.rank() == 0);
}

}  // namespace muster
