// The smallest training: two linear layers learn to give zeros.
//
//   minimal fit --devices 2

#include <muster/muster.h>

#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <vector>

namespace {

struct Sample {
  at::Tensor x;  // 64 numbers
};

class Net : public muster::Module<Sample> {
 public:
  at::Tensor training_step(const Batch& batch, muster::Step& step) override {
    auto loss = layers_->forward(batch.stack(&Sample::x)).square().mean();
    step.log("train/loss", loss);
    return loss;
  }

  void validation_step(const Batch& batch, muster::Step& step) override {
    step.log("val/loss", layers_->forward(batch.stack(&Sample::x)).square().mean());
  }

  muster::Optimizers configure_optimizers() override {
    return {.optimizer = std::make_shared<torch::optim::SGD>(parameters(), 0.1)};
  }

 private:
  torch::nn::Sequential layers_ =
      register_module("layers", torch::nn::Sequential{torch::nn::Linear{64, 64}, torch::nn::ReLU{},
                                                      torch::nn::Linear{64, 10}});
};

std::vector<Sample> samples(int64_t count) {
  std::vector<Sample> all;
  for (int64_t i = 0; i < count; ++i) all.push_back({at::randn({64})});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto program = [](muster::Cli& cli) {
    const muster::Loader<Sample> train{samples(4096), {.batch_size = 8, .shuffle = true}};
    const muster::Loader<Sample> val{samples(500), {.batch_size = 8}};
    Net net;
    cli.run(net, muster::DataModule<Sample>{.train_dataloader = train, .val_dataloader = val});
  };
  return muster::run(argc, argv, program, {.max_epochs = 10});
}
