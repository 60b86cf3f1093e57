// Fails in the way that --model.how says, on the last rank of the job, or misuses a collective in
// the hook that --model.where names; then each rank writes when it came to its last call (or to the
// end of its loop) to RUN_DIR/last-call-RANK: CLOCK_MONOTONIC in ns.

#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace {

struct Sample {
  at::Tensor x;
};

struct ModelOptions {
  /// hook, torch, slow_data or second_trainer; or a misuse: rank_zero (alone gathers), left_out (by
  /// the last rank), operation, root, reduction, count, line (others on the last rank), throws
  std::string how = "hook";
  std::string where;  ///< start, batch or end
};
struct DataOptions {
  int64_t samples = 64;
};

class Failing : public muster::Module<Sample, Sample> {
 public:
  explicit Failing(ModelOptions options) : options_{std::move(options)} {}

  void on_validation_epoch_start(muster::Step& step) override { misuse("start", step); }
  void on_predict_epoch_start(muster::Step& step) override { misuse("start", step); }
  void validation_step(const Batch& batch, muster::Step& step) override {
    misuse("batch", step);
    step.log_image("image", {batch.samples()[0].x});
    if (!options_.where.empty() || batch.batch_idx() < 2 || !is_last(step)) {
      return;
    }
    if (options_.how == "torch") {
      batch.samples()[0].x + at::ones({5, 7});
    }
    muster::fail(muster::ErrorKind::user, "planned failure of batch {}", batch.batch_idx());
  }
  std::vector<Sample> predict_step(const Batch& batch, muster::Step& step) override {
    misuse("batch", step);
    return {{batch.samples()[0].x}};
  }
  void on_validation_epoch_end(muster::Step& step) override { misuse("end", step); }
  void on_predict_epoch_end(muster::Step& step) override { misuse("end", step); }
  void teardown(muster::Step& step) override { note_time(step); }

 private:
  static bool is_last(const muster::Step& step) { return step.rank() + 1 == step.world_size(); }

  void note_time(const muster::Step& step) const {
    if (options_.where.empty()) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::ofstream{step.run_dir() + "/last-call-" + std::to_string(step.rank())}
        << std::chrono::nanoseconds{now}.count();
  }

  void misuse(const std::string& where, muster::Step& step) const {
    if (where != options_.where) return;
    note_time(step);
    const bool last = is_last(step);
    const std::string& how = options_.how;
    if (how == "rank_zero" && step.is_global_zero()) step.all_gather(1);
    if (how == "left_out" && !last) step.all_gather(1);
    if (how == "operation" && last) step.broadcast(1);
    if (how == "operation" && !last) step.all_gather(1);
    if (how == "root") step.broadcast(1, last ? 1 : 0);
    if (how == "reduction") {
      step.all_reduce(1.0, last ? muster::ReduceOp::max : muster::ReduceOp::sum);
    }
    if (how == "count") {
      step.group().all_reduce(std::vector<double>(last ? 2 : 1), muster::ReduceOp::sum);
    }
    if (how == "line" && last) step.all_gather(1);
    if (how == "line" && !last) step.all_gather(1);
    if (how == "throws") {
      muster::check(!last, muster::ErrorKind::user, "planned failure of the last rank");
      step.all_gather(1);
    }
  }

  ModelOptions options_;
};

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    if (model.how == "second_trainer") {
      muster::Trainer second{cli.trainer().options()};
    }
    const bool slow = model.how == "slow_data";
    const muster::Loader<Sample> loader{
        muster::make_dataset(data.samples, [slow](int64_t index, muster::Rng& /*rng*/) {
          if (slow && index >= 4) {
            std::this_thread::sleep_for(std::chrono::seconds{60});
          }
          return Sample{at::ones({8, 8})};
        })};
    Failing module{model};
    cli.run(module,
            muster::DataModule<Sample>{.val_dataloader = loader, .predict_dataloader = loader});
  });
}
