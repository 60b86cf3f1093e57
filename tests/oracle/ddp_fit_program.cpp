// Trains one small network by each optimizer, with and without accumulation, from weights and on
// samples that a file gives; the checkpoints are
// run_dir/OPTIMIZER-ACCUMULATE/checkpoints/last.ckpt.

#include <muster/muster.h>
#include <muster/train/model_checkpoint.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>
#include <vector>

namespace {

struct Sample {
  at::Tensor x;  // [2, 6, 6]
  at::Tensor y;  // [1]
};

struct ModelOptions {
  bool batch_norm = false;  // BatchNorm2d in place of GroupNorm
};
struct DataOptions {
  std::string samples;     // a safetensors file of x [N, 2, 6, 6] and y [N, 1]
  int64_t batch_size = 4;  // samples a batch, in the order of the file
};

class Net : public muster::Module<Sample> {
 public:
  Net(const ModelOptions& options, std::string optimizer) : optimizer_{std::move(optimizer)} {
    if (options.batch_norm) {
      batch_norm_ = register_module("norm", torch::nn::BatchNorm2d{8});
    } else {
      group_norm_ = register_module("norm", torch::nn::GroupNorm{2, 8});
    }
  }

  at::Tensor training_step(const Batch& batch, muster::Step& step) override {
    const auto convolved = conv_->forward(batch.stack(&Sample::x));
    const auto normed =
        batch_norm_.is_empty() ? group_norm_->forward(convolved) : batch_norm_->forward(convolved);
    const auto hidden = hidden_->forward(at::relu(normed).flatten(1));
    const auto y = head_->forward(at::tanh(layer_norm_->forward(hidden)));
    auto loss = at::mse_loss(y, batch.stack(&Sample::y));
    step.log("train/loss", loss);
    return loss;
  }

  muster::Optimizers configure_optimizers() override {
    using namespace torch::optim;
    if (optimizer_ == "sgd") {
      return {std::make_shared<SGD>(parameters(), SGDOptions{0.05}.momentum(0.9))};
    }
    if (optimizer_ == "adam") {
      return {std::make_shared<Adam>(parameters(), AdamOptions{0.01})};
    }
    return {std::make_shared<AdamW>(parameters(), AdamWOptions{0.01}.weight_decay(0.1))};
  }

 private:
  std::string optimizer_;
  torch::nn::Conv2d conv_ = register_module(
      "conv", torch::nn::Conv2d{torch::nn::Conv2dOptions{2, 8, 3}.padding(1).bias(false)});
  torch::nn::BatchNorm2d batch_norm_ = nullptr;
  torch::nn::GroupNorm group_norm_ = nullptr;
  torch::nn::Linear hidden_ = register_module("hidden", torch::nn::Linear{8 * 6 * 6, 16});
  torch::nn::LayerNorm layer_norm_ =
      register_module("layer_norm", torch::nn::LayerNorm{torch::nn::LayerNormOptions{{16}}});
  torch::nn::Linear head_ = register_module("head", torch::nn::Linear{16, 1});
};

std::vector<Sample> read_samples(const std::string& path) {
  const auto file = muster::load_safetensors(path);
  const auto named = [&](const std::string& name) {
    for (const auto& [its_name, tensor] : file.tensors) {
      if (its_name == name) return tensor;
    }
    muster::fail(muster::ErrorKind::data, "{} holds no {}", path, name);
  };
  const at::Tensor x = named("x");
  const at::Tensor y = named("y");
  std::vector<Sample> samples;
  for (int64_t i = 0; i < x.size(0); ++i) samples.push_back({x[i], y[i]});
  return samples;
}

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    const muster::Loader<Sample> train{read_samples(data.samples), {.batch_size = data.batch_size}};
    muster::Trainer& first = cli.trainer();
    for (const std::string optimizer : {"sgd", "adam", "adamw"}) {
      for (const int64_t accumulate : {1, 2}) {
        muster::TrainerOptions options = first.options();
        options.accumulate_grad_batches = accumulate;
        options.run_dir += muster::format("/{}-{}", optimizer, accumulate);
        muster::Trainer trainer{options, first.group()};
        trainer.add_callback(std::make_shared<muster::ModelCheckpoint>(
            muster::ModelCheckpointOptions{.save_top_k = 1, .every_n_epochs = 0}));
        Net net{model, optimizer};
        trainer.fit(net, train, {}, cli.ckpt_path());
      }
    }
  });
}
