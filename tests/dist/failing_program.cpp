// Fails in the way that --model.how says, on the last rank of the job.

#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <string>
#include <thread>

namespace {

struct Sample {
  at::Tensor x;
};

struct ModelOptions {
  std::string how = "hook";  // hook, torch, slow_data or second_trainer
};
struct DataOptions {};

class Failing : public muster::Module<Sample> {
 public:
  explicit Failing(std::string how) : how_{std::move(how)} {}
  void validation_step(const Batch& batch, muster::Step& step) override {
    step.log_image("image", {batch.samples()[0].x});
    if (batch.batch_idx() < 2 || step.rank() + 1 < step.world_size()) {
      return;
    }
    if (how_ == "torch") {
      batch.samples()[0].x + at::ones({5, 7});
    }
    muster::fail(muster::ErrorKind::user, "planned failure of batch {}", batch.batch_idx());
  }

 private:
  std::string how_;
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
        muster::make_dataset(64, [slow](int64_t index, muster::Rng& /*rng*/) {
          if (slow && index >= 4) {
            std::this_thread::sleep_for(std::chrono::seconds{60});
          }
          return Sample{at::ones({8, 8})};
        })};
    Failing module{model.how};
    cli.run(module, muster::DataModule<Sample>{.val_dataloader = loader});
  });
}
