// Trains a small network in which MUSTER_FAULT plants faults, a list of POINT:RANK:STEP:ACTION
// (RANK and STEP may be *). Points: main, start (on_fit_start), load (STEP is a sample), step
// (training_step), backward, batch_end, val (STEP is a batch), val_end, epoch_end (STEP is an
// epoch), end (on_train_end). Each step and each validation batch of a rank is a line in
// MARKS/rank-K, and so is a fault, with the time.

#include <muster/muster.h>
#include <muster/proc/rank_env.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/sgd.h>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Sample {
  at::Tensor x;  // [8]
  at::Tensor y;  // [1]
};

struct ModelOptions {
  std::string marks;             // folder of the marks; "": none
  int64_t step_ms = 0;           // how long a training step takes at least
  int64_t val_ms = 0;            // the same for a batch of validation
  bool large = false;            // gradients fill more than one bucket
  bool other_init = false;       // the last rank starts from other weights
  bool other_shape = false;      // the last rank has another parameter
  bool early_stop = false;       // EarlyStopping on what differs from rank to rank
  int64_t checkpoint_every = 0;  // steps between checkpoints; 0: one an epoch
  int64_t print_lines = 0;       // lines that each step prints
  std::string api_key;           // secrets of the user, which the program only has
  std::string tracking_uri;
};
struct DataOptions {
  int64_t samples = 24;
  int64_t val_samples = 5;
  int64_t batch_size = 2;
};

int rank_of_environment() {
  const char* text = std::getenv("RANK");
  return text == nullptr ? 0 : std::atoi(text);
}

/// Lines that the test reads while the program runs.
class Marks {
 public:
  explicit Marks(const std::string& folder) {
    if (folder.empty()) return;
    const std::string path = folder + "/rank-" + std::to_string(rank_of_environment());
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  void add(const std::string& line) const {
    if (fd_ < 0) return;
    const std::string text = line + "\n";
    if (write(fd_, text.data(), text.size()) < 0) std::perror("marks");
  }

 private:
  int fd_ = -1;
};

[[noreturn]] void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds{1});
}

/// A collective in which the last rank does something else.
void misuse(const std::string& how, muster::Step& step) {
  const bool last = step.rank() + 1 == step.world_size();
  auto& group = step.group();
  const auto add_up = [&](int numbers) {
    group.all_reduce(std::vector<double>(static_cast<size_t>(numbers), 1.0), muster::ReduceOp::sum);
  };
  if (how == "count") add_up(last ? 500 : 1000);
  if (how == "dtype" && last) {
    group.all_reduce(std::vector<int64_t>(4, 1), muster::ReduceOp::sum);
  } else if (how == "dtype") {
    add_up(4);
  }
  if (how == "operation" && last) {
    step.broadcast(1);
  } else if (how == "operation") {
    add_up(1);
  }
  if (how == "reduction") {
    step.all_reduce(1.0, last ? muster::ReduceOp::max : muster::ReduceOp::sum);
  }
  if (how == "root") step.broadcast(1, last ? 1 : 0);
  if (how == "fewer" && !last) step.all_reduce(1.0);
}

const std::map<std::string, std::function<void()>> actions{
    {"kill", [] { kill(getpid(), SIGKILL); }},
    {"kills_soon",
     [] {
       std::this_thread::sleep_for(std::chrono::milliseconds{50});
       kill(getpid(), SIGKILL);
     }},
    {"stop", [] { kill(getpid(), SIGSTOP); }},
    {"term", [] { kill(getpid(), SIGTERM); }},
    {"usr1", [] { kill(getpid(), SIGUSR1); }},
    {"exit0", [] { _exit(0); }},
    {"quits", [] { std::exit(0); }},  // NOLINT(concurrency-mt-unsafe): what a user may call
    {"segv", [] { raise(SIGSEGV); }},
    {"terminate", [] { std::thread{[] { throw std::runtime_error{"on a thread"}; }}.join(); }},
    {"deaf",
     [] {
       std::signal(SIGTERM, SIG_IGN);
       hang();
     }},
    {"hang", hang},
    {"throw", [] { throw std::runtime_error{"the planned failure"}; }},
    // As a library does that tells what it had sent.
    {"throw_key",
     [] {
       const char* key = std::getenv("WANDB_API_KEY");
       throw std::runtime_error{"401: the key " + std::string{key == nullptr ? "" : key} +
                                " is not known at https://me:hunter22@host"};
     }},
    // To a folder of the same name as the one that it is in, of the run folder `other`.
    {"elsewhere", [] { std::filesystem::current_path("../../other/checkpoints"); }},
    {"late", [] { std::this_thread::sleep_for(std::chrono::seconds{2}); }},
};

class Faults {
 public:
  explicit Faults(const Marks& marks) : marks_{marks} {
    const char* text = std::getenv("MUSTER_FAULT");
    std::istringstream list{text == nullptr ? "" : text};
    for (std::string item; std::getline(list, item, ',');) {
      std::istringstream parts{item};
      Fault fault;
      std::getline(parts, fault.point, ':');
      std::getline(parts, fault.rank, ':');
      std::getline(parts, fault.step, ':');
      std::getline(parts, fault.action, ':');
      faults_.push_back(fault);
    }
  }

  /// What is planted here; "" for nothing.
  [[nodiscard]] std::string planted(const std::string& point, int64_t step) const {
    for (const auto& fault : faults_) {
      if (fault.point == point && is(fault.rank, rank_of_environment()) && is(fault.step, step)) {
        return fault.action;
      }
    }
    return "";
  }
  void at(const std::string& point, int64_t step) const {
    const auto action = actions.find(planted(point, step));
    if (action == actions.end()) return;
    note(point);
    action->second();
  }
  void note(const std::string& point) const {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    marks_.add("fault " + point + " " +
               std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  }

 private:
  struct Fault {
    std::string point{}, rank{}, step{}, action{};
  };
  static bool is(const std::string& text, int64_t number) {
    return text == "*" || text == std::to_string(number);
  }
  const Marks& marks_;
  std::vector<Fault> faults_{};
};

/// Wants the training to stop, on a rank that may be the only one.
class HasEnough : public muster::Callback {
 public:
  explicit HasEnough(const Faults& faults) : faults_{faults} {}

  void on_epoch_end(const muster::Progress& progress, const muster::Report& /*report*/) override {
    if (progress.stage == muster::Stage::fit &&
        faults_.planted("epoch_end", progress.epoch) == "enough") {
      progress.training->stop("this rank has enough");
    }
  }

 private:
  const Faults& faults_;
};

class Net : public muster::Module<Sample> {
 public:
  Net(ModelOptions options, const Marks& marks, const Faults& faults)
      : options_{std::move(options)}, marks_{marks}, faults_{faults} {
    const muster::RankEnv env = muster::rank_env().value_or(muster::RankEnv{});
    const bool last = env.rank + 1 == env.world_size;
    const int64_t width = options_.large ? 200'000 : 16;
    a_ = register_parameter("a", at::randn({width, 8}) * 0.3);
    b_ = register_parameter("b", at::randn({1, width}) * 0.1);
    bias_ = register_parameter("bias", at::zeros({options_.other_shape && last ? 3 : 1}));
    if (options_.other_init && last) {
      const at::NoGradGuard no_grad;
      a_.add_(1.0);
    }
  }

  void on_fit_start(muster::Step& step) override {
    faults_.at("start", 0);
    misuse_at("start", step);
  }
  at::Tensor training_step(const Batch& batch, muster::Step& step) override {
    const int64_t now = step.global_step();
    marks_.add("step " + std::to_string(now));
    std::this_thread::sleep_for(std::chrono::milliseconds{options_.step_ms});
    for (int64_t i = 0; i < options_.print_lines; ++i) print(step.rank(), i);
    faults_.at("step", now);
    const std::string planted = faults_.planted("step", now);
    at::Tensor hidden = at::linear(batch.stack(&Sample::x), a_);
    if (!faults_.planted("backward", now).empty()) {
      hidden.register_hook([this, now](const at::Tensor& gradient) {
        faults_.at("backward", now);
        return gradient;
      });
    }
    at::Tensor out = at::linear(at::tanh(hidden), b_);
    if (planted != "unused") out = out + bias_;
    at::Tensor loss = at::mse_loss(out, batch.stack(&Sample::y));
    if (planted == "nan") {
      faults_.note("step");
      loss = loss * NAN;
    }
    step.log("train/loss", loss);
    return loss;
  }
  void on_train_batch_end(const at::Tensor& /*loss*/, const Batch& /*batch*/,
                          muster::Step& step) override {
    if (faults_.planted("batch_end", step.global_step()) != "drift") return;
    faults_.note("batch_end");
    const at::NoGradGuard no_grad;
    b_.select(1, 3).add_(1e-6);
  }
  void validation_step(const Batch& batch, muster::Step& step) override {
    marks_.add("val " + std::to_string(batch.batch_idx()) + " of " +
               std::to_string(std::ssize(batch.samples())));
    std::this_thread::sleep_for(std::chrono::milliseconds{options_.val_ms});
    faults_.at("val", batch.batch_idx());
    const at::Tensor out = at::linear(at::tanh(at::linear(batch.stack(&Sample::x), a_)), b_);
    step.log("val/loss", at::mse_loss(out, batch.stack(&Sample::y)));
    if (!options_.early_stop) return;
    // Better and better on rank 0, worse and worse on the others.
    ++evaluated_;
    step.log("val/of_rank", step.rank() == 0 ? -evaluated_ : 10 * evaluated_);
  }
  void on_validation_epoch_end(muster::Step& step) override { misuse_at("val_end", step); }
  void on_train_end(muster::Step& /*step*/) override { faults_.at("end", 0); }

  muster::Optimizers configure_optimizers() override {
    return {std::make_shared<torch::optim::SGD>(parameters(),
                                                torch::optim::SGDOptions{0.01}.momentum(0.9))};
  }

 private:
  void misuse_at(const std::string& point, muster::Step& step) const {
    const std::string how = faults_.planted(point, 0);
    if (how.empty()) return;
    faults_.note(point);
    misuse(how, step);
  }
  /// As a user's program may: in several calls, and longer than a pipe takes at once.
  static void print(int rank, int64_t line) {
    std::printf("line of %d", rank);
    std::printf(" number %lld ", static_cast<long long>(line));
    std::printf("%s\n", std::string(static_cast<size_t>(line * 37 % 300), 'x').c_str());
  }

  ModelOptions options_;
  const Marks& marks_;
  const Faults& faults_;
  at::Tensor a_, b_, bias_;
  double evaluated_ = 0;
};

Sample sample(int64_t index) {
  muster::Rng own{{17, static_cast<uint64_t>(index)}};
  at::Tensor x = at::empty({8});
  for (int64_t i = 0; i < 8; ++i) {
    x.mutable_data_ptr<float>()[i] = static_cast<float>(own.normal());
  }
  return {x, (x.sum() * 0.3 + x.max()).reshape({1})};
}

void train(muster::Cli& cli) {
  const auto [model, data] = cli.options<ModelOptions, DataOptions>();
  const Marks marks{model.marks};
  const Faults faults{marks};
  faults.at("main", 0);
  const auto load = [&faults](int64_t index, muster::Rng& /*rng*/) {
    faults.at("load", index);
    return sample(index);
  };
  if (model.early_stop) {
    cli.trainer().add_callback(std::make_shared<muster::EarlyStopping>(
        muster::EarlyStoppingOptions{.monitor = "val/of_rank", .patience = 2}));
  }
  if (model.checkpoint_every > 0) {
    cli.trainer().add_callback(
        std::make_shared<muster::ModelCheckpoint>(muster::ModelCheckpointOptions{
            .save_top_k = 2, .every_n_train_steps = model.checkpoint_every}));
  }
  cli.trainer().add_callback(std::make_shared<HasEnough>(faults));
  Net net{model, marks, faults};
  cli.run(net, muster::DataModule<Sample>{
                   .train_dataloader =
                       muster::Loader<Sample>{muster::make_dataset(data.samples, load),
                                              {.batch_size = data.batch_size, .shuffle = true}},
                   .val_dataloader = muster::Loader<Sample>{
                       muster::make_dataset(data.val_samples,
                                            [](int64_t index, muster::Rng& /*rng*/) {
                                              return sample(1000 + index);
                                            }),
                       {.batch_size = data.batch_size}}});
}

}  // namespace

int main(int argc, char** argv) { return muster::run(argc, argv, train); }
