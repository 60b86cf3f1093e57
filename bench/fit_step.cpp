// What a step of Trainer.fit costs beside a loop on libtorch alone, for bench/fit.py, which prints
// it for people; the result here is one JSON object on the standard output.
//
//   fit_step time RUN_DIR [WORKERS]    W = 1: microseconds a step, by block
//   fit_step instructions RUN_DIR      W = 1, under callgrind: dumps `trainer`, `bare`, `bare
//   again` fit_step ranks RUN_DIR             W = 2: microseconds of each step, Gloo operations of
//   each
//
// Within one training, after a block of the Trainer's steps, the bare loop does a block of its own,
// so that both see the same machine. In the Trainer's time is everything from the end of a step to
// the end of a later one, with the options that a user has who sets none: the hooks and callbacks
// (progress bar, ModelCheckpoint), the check of the loss, the seed of each batch, and every 50
// steps a row to CSV, W&B and TensorBoard. Not in it is what belongs to an epoch: its checkpoint,
// its report, the first batches.

#include "fit_step_work.h"
#include "gloo_operations.h"

#include <muster/base/json_writer.h>
#include <muster/proc/launch.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>
#include <muster/train/environment.h>
#include <muster/train/trainer.h>

#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

namespace {

constexpr int64_t samples = 4096;
constexpr int64_t batch_size = 8;
constexpr int64_t most_blocks = 30;
constexpr int64_t warm_up = 10;
constexpr int64_t block_steps = 2 * log_every_n_steps;

class Net : public muster::Module<Sample> {
 public:
  at::Tensor training_step(const Batch& batch, muster::Step& step) override {
    auto loss = layers_->forward(batch.stack(&Sample::x)).square().mean();
    step.log("train/loss", loss);
    return loss;
  }
  muster::Optimizers configure_optimizers() override {
    return {.optimizer = std::make_shared<torch::optim::SGD>(parameters(), 0.1)};
  }

 private:
  torch::nn::Sequential layers_ =
      register_module("layers", torch::nn::Sequential{torch::nn::Linear{64, 64}, torch::nn::ReLU{},
                                                      torch::nn::Linear{64, 10}});
};

muster::Loader<Sample> make_loader(int num_workers) {
  std::vector<Sample> all;
  for (int64_t i = 0; i < samples; ++i) {
    all.push_back({at::randn({64})});
  }
  return muster::Loader<Sample>{
      std::move(all), {.batch_size = batch_size, .shuffle = true, .num_workers = num_workers}};
}

/// Enough for all blocks.
int64_t all_steps(const muster::Loader<Sample>& loader, int64_t ranks) {
  const int64_t epoch = loader.size().value() / ranks;
  const int64_t blocks_of_epoch = epoch / (warm_up + block_steps);
  return (most_blocks + blocks_of_epoch - 1) / blocks_of_epoch * epoch;
}

/// Cuts a training into blocks of 100 steps of one epoch each, with a warm-up before: two rows of
/// values are in each block.
class Blocks final : public muster::Callback {
 public:
  struct Events {
    std::function<void()> begin{};
    std::function<void(bool row)> step{};       ///< `row`: a row of values follows
    std::function<void(int64_t number)> end{};  ///< of block `number`, counted from 0
  };

  explicit Blocks(Events events) : events_{std::move(events)} {}

  void on_epoch_start(const muster::Progress& /*progress*/) override { done_ = 0; }
  void on_batch_end(const muster::Progress& progress) override {
    if (number_ == most_blocks) {
      return;
    }
    ++done_;
    if (done_ == warm_up) {
      events_.begin();
    } else if (done_ > warm_up && events_.step) {
      events_.step(progress.training->is_logging_step());
    }
    if (done_ == warm_up + block_steps) {
      done_ = 0;
      events_.end(number_++);
    }
  }

 private:
  Events events_;
  int64_t done_ = 0;
  int64_t number_ = 0;
};

class Stopwatch {
 public:
  /// Microseconds since the last call.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::micro>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void add_list(muster::JsonWriter& json, std::string_view name, const std::vector<double>& values) {
  json.key(name).begin_list();
  for (const double value : values) {
    json.value(value);
  }
  json.end_list();
}

void print(const muster::JsonWriter& json) { std::printf("%s\n", json.text().c_str()); }

void run_steps(BareLoop& loop, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    loop.step();
  }
}

/// Each block of a bare loop reads an epoch of its own: samples that a block before it has just
/// read would be in the processor's cache.
void warm_up_for(BareLoop& loop, int64_t epoch) {
  loop.open(epoch);
  run_steps(loop, warm_up);
}

/// Runs both, each of them first every other time.
template <typename First, typename Second>
void in_turn(int64_t number, const First& first, const Second& second) {
  if (number % 2 == 0) {
    first();
    second();
  } else {
    second();
    first();
  }
}

void time_blocks(const std::string& run_dir, int num_workers) {
  const auto loader = make_loader(num_workers);
  const auto bare = make_bare_loop(loader);
  const auto again = make_bare_loop(loader);
  std::vector<double> trainer_us;
  std::vector<double> bare_us;
  std::vector<double> again_us;
  int64_t epochs = 1'000;
  Stopwatch watch;
  const auto run_block = [&](BareLoop& loop, int64_t epoch, std::vector<double>& us) {
    warm_up_for(loop, epoch);
    watch.lap();
    run_steps(loop, block_steps);
    us.push_back(watch.lap() / block_steps);
  };
  const auto end_block = [&](int64_t number) {
    trainer_us.push_back(watch.lap() / block_steps);
    in_turn(
        number, [&] { run_block(*bare, epochs++, bare_us); },
        [&] { run_block(*again, epochs++, again_us); });
  };

  Net net;
  muster::Trainer trainer{{.max_steps = all_steps(loader, 1), .run_dir = run_dir}};
  trainer.add_callback(
      std::make_shared<Blocks>(Blocks::Events{.begin = [&] { watch.lap(); }, .end = end_block}));
  trainer.fit(net, loader);

  muster::JsonWriter json;
  json.begin_object();
  add_list(json, "trainer", trainer_us);
  add_list(json, "bare", bare_us);
  add_list(json, "bare again", again_us);
  print(json.end_object());
}

/// Loads in the loop's own thread, so that the count is the same in each run.
void count_instructions(const std::string& run_dir) {
  const auto loader = make_loader(0);
  const auto bare = make_bare_loop(loader);
  const auto begin_block = [] {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
  };
  const auto end_block = [&](int64_t number) {
    CALLGRIND_DUMP_STATS_AT("trainer");
    for (const char* name : {"bare", "bare again"}) {
      warm_up_for(*bare, number);
      CALLGRIND_ZERO_STATS;
      run_steps(*bare, block_steps);
      CALLGRIND_DUMP_STATS_AT(name);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
  };
  Net net;
  muster::Trainer trainer{{.max_steps = warm_up + block_steps, .run_dir = run_dir}};
  trainer.add_callback(
      std::make_shared<Blocks>(Blocks::Events{.begin = begin_block, .end = end_block}));
  trainer.fit(net, loader);
  muster::JsonWriter json;
  print(json.begin_object().key("steps").value(block_steps).end_object());
}

/// Time and Gloo operations of single steps.
struct Steps {
  std::vector<double> us{};
  std::vector<double> operations{};
  std::vector<double> operations_with_row{};
};

/// Notes what each step takes: in the first block operations, in the others time.
class StepMeter {
 public:
  void begin() {
    counted_ = GlooOperations::total();
    row_ = false;
    watch_.lap();
  }
  /// `row`: what the next step takes is that of a row as well.
  void step(Steps& steps, bool row) {
    if (counter_) {
      const auto operations = static_cast<double>(GlooOperations::total() - counted_);
      counted_ = GlooOperations::total();
      (std::exchange(row_, row) ? steps.operations_with_row : steps.operations)
          .push_back(operations);
    } else {
      steps.us.push_back(watch_.lap());
    }
  }
  void stop_counting() { counter_.reset(); }

 private:
  std::optional<GlooOperations> counter_{std::in_place};
  bool row_ = false;
  int64_t counted_ = 0;
  Stopwatch watch_{};
};

void add_steps(muster::JsonWriter& json, std::string_view name, const Steps& steps) {
  json.key(name).begin_object();
  add_list(json, "us", steps.us);
  add_list(json, "operations", steps.operations);
  add_list(json, "operations with row", steps.operations_with_row);
  json.end_object();
}

void time_ranks(const std::string& run_dir) {
  const auto loader = make_loader(2);
  Net net;
  muster::Trainer trainer{{.devices = 2, .max_steps = all_steps(loader, 2), .run_dir = run_dir}};
  const auto bare = make_reducer_loop(loader, trainer.group(), "bench/bare");
  const auto again = make_reducer_loop(loader, trainer.group(), "bench/bare again");
  Steps trainer_steps;
  Steps bare_steps;
  Steps again_steps;
  StepMeter meter;
  int64_t epochs = 1'000;
  const auto run_block = [&](BareLoop& loop, int64_t epoch, Steps& steps) {
    warm_up_for(loop, epoch);
    meter.begin();
    for (int64_t i = 0; i < block_steps; ++i) {
      loop.step();
      meter.step(steps, false);
    }
  };
  const auto end_block = [&](int64_t number) {
    in_turn(
        number, [&] { run_block(*bare, epochs++, bare_steps); },
        [&] { run_block(*again, epochs++, again_steps); });
    meter.stop_counting();
  };
  trainer.add_callback(std::make_shared<Blocks>(
      Blocks::Events{.begin = [&] { meter.begin(); },
                     .step = [&](bool row) { meter.step(trainer_steps, row); },
                     .end = end_block}));
  trainer.fit(net, loader);
  if (trainer.group().rank() != 0) {
    return;
  }
  muster::JsonWriter json;
  json.begin_object();
  add_steps(json, "trainer", trainer_steps);
  add_steps(json, "bare", bare_steps);
  add_steps(json, "bare again", again_steps);
  print(json.end_object());
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: fit_step time|instructions|ranks RUN_DIR [WORKERS]\n");
    return 2;
  }
  const auto& [mode, run_dir] = std::pair{arguments[0], arguments[1]};
  if (mode == "ranks" && !muster::rank_env()) {
    return muster::launch({"fit_step", mode, run_dir}, {.ranks = 2, .self_exe = true});
  }
  muster::attach_to_launcher();
  muster::set_compute_threads(1);
  muster::seed_everything(0);
  if (mode == "time") {
    time_blocks(run_dir, arguments.size() > 2 ? std::stoi(arguments[2]) : 2);
  } else if (mode == "instructions") {
    count_instructions(run_dir);
  } else {
    time_ranks(run_dir);
  }
  return 0;
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run({argv + 1, argv + argc});
  } catch (...) {
    muster::fail_rank(muster::describe_failure(std::current_exception()));
  }
}
