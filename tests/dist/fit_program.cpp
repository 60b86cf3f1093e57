// Trains a small network, perhaps with the trouble that --model.trouble names. Each rank writes
// what it ended with to DIR/rank-K.safetensors, where --model.out DIR is given: its parameters,
// its buffers, and the steps at which the optimizer went on.

#include <muster/io/safetensors.h>
#include <muster/muster.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Sample {
  at::Tensor x;  // [8]
  at::Tensor y;  // [1]
};

enum class Trouble { none, not_finite, exception, unused, gather, other_layers };
constexpr auto enum_names(Trouble /*unused*/) {
  return std::array{
      std::pair{"none", Trouble::none},           std::pair{"not_finite", Trouble::not_finite},
      std::pair{"exception", Trouble::exception}, std::pair{"unused", Trouble::unused},
      std::pair{"gather", Trouble::gather},       std::pair{"other_layers", Trouble::other_layers}};
}

struct ModelOptions {
  double dropout = 0.3;
  bool batch_norm = false;       // BatchNorm in place of LayerNorm
  bool sync_batch_norm = false;  // SyncBatchNorm beside LayerNorm
  bool adam = false;             // with schedules; else SGD with momentum
  Trouble trouble =
      Trouble::none;  // what goes wrong, in batch `at` of epoch 1 (gather: everywhere)
  int64_t at = 7;
  std::string out;
};
struct DataOptions {
  int64_t samples = 21;
  int64_t batch_size = 2;
};

class Net : public muster::Module<Sample> {
 public:
  Net(ModelOptions options, int64_t batches) : options_{std::move(options)}, batches_{batches} {
    a_weight_ = register_parameter("a_weight", at::randn({16, 8}) * 0.5);
    a_bias_ = register_parameter("a_bias", at::zeros({16}));
    scale_ = register_parameter("norm_weight", at::ones({16}));
    shift_ = register_parameter("norm_bias", at::zeros({16}));
    b_weight_ = register_parameter("b_weight", at::randn({1, 16}) * 0.5);
    b_bias_ = register_parameter("b_bias", at::zeros({1}));
    if (options_.trouble == Trouble::unused) {
      rare_ = register_parameter("rare_weight", at::randn({1, 16}) * 0.5);
    }
    if (options_.batch_norm) {
      mean_ = register_buffer("running_mean", at::zeros({16}));
      var_ = register_buffer("running_var", at::ones({16}));
    }
    if (options_.sync_batch_norm) {
      norm_ = register_module("norm", muster::SyncBatchNorm{16});
    }
  }

  void on_train_batch_start(const Batch& batch, muster::Step& step) override {
    gather_in_batch(batch, step);
  }

  at::Tensor training_step(const Batch& batch, muster::Step& step) override {
    const bool now = step.epoch() == 1 && batch.batch_idx() == options_.at;
    if (now && options_.trouble == Trouble::exception) {
      throw std::runtime_error{"the model does not like this batch"};
    }
    gather_in_batch(batch, step);
    skips_norm_ = now && options_.trouble == Trouble::other_layers;
    at::Tensor loss = at::mse_loss(forward(batch), batch.stack(&Sample::y));
    if (now && options_.trouble == Trouble::not_finite) {
      loss = loss * NAN;
    }
    step.log("train/loss", loss);
    return loss;
  }

  void on_train_batch_end(const at::Tensor& /*loss*/, const Batch& batch,
                          muster::Step& step) override {
    gather_in_batch(batch, step);
  }
  void on_before_optimizer_step(torch::optim::Optimizer& /*optimizer*/,
                                muster::Step& step) override {
    steps_ += std::to_string(step.global_step()) + " ";
    gather_of_all(step);
  }
  void on_train_epoch_start(muster::Step& step) override { gather_of_all(step); }
  void on_train_epoch_end(muster::Step& step) override { gather_of_all(step); }

  void validation_step(const Batch& batch, muster::Step& step) override {
    step.log("val/loss", at::mse_loss(forward(batch), batch.stack(&Sample::y)));
  }

  muster::Optimizers configure_optimizers() override {
    if (!options_.adam) {
      return {std::make_shared<torch::optim::SGD>(parameters(),
                                                  torch::optim::SGDOptions{0.02}.momentum(0.9))};
    }
    const auto adam =
        std::make_shared<torch::optim::Adam>(parameters(), torch::optim::AdamOptions{0.01});
    return {.optimizer = adam,
            .schedulers = {{.scheduler = muster::cosine_annealing_lr(*adam, {.t_max = 40}),
                            .interval = muster::SchedulerConfig::Interval::step},
                           {.scheduler = muster::reduce_lr_on_plateau(*adam, {.patience = 0}),
                            .monitor = "val/loss"}}};
  }

  void write_down(int rank) const {
    muster::NamedTensors tensors;
    for (const auto& item : named_parameters()) {
      tensors.emplace_back(item.key(), item.value().detach());
    }
    for (const auto& item : named_buffers()) {
      tensors.emplace_back(item.key(), item.value());
    }
    muster::save_safetensors(muster::format("{}/rank-{}.safetensors", options_.out, rank), tensors,
                             {{"steps", steps_}, {"gathers", std::to_string(gathers_ > 0)}});
  }

 private:
  at::Tensor forward(const Batch& batch) {
    at::Tensor hidden = at::linear(batch.stack(&Sample::x), a_weight_, a_bias_);
    if (options_.sync_batch_norm && !skips_norm_) {
      hidden = norm_(hidden);
    }
    hidden = options_.batch_norm ? at::batch_norm(hidden, scale_, shift_, mean_, var_,
                                                  is_training(), 0.1, 1e-5, false)
                                 : at::layer_norm(hidden, {16}, scale_, shift_);
    hidden = at::dropout(at::relu(hidden), options_.dropout, is_training());
    const at::Tensor y = at::linear(hidden, b_weight_, b_bias_);
    return rare_.defined() && batch.batch_idx() % 3 == 0 ? y + at::linear(hidden, rare_) : y;
  }

  /// Those ranks are present that have a batch of the same round.
  void gather_in_batch(const Batch& batch, muster::Step& step) {
    const int64_t ranks = step.world_size();
    const int64_t first = batch.batch_idx() / ranks * ranks;
    gather(step, first, std::min(batches_, first + ranks) - first, batch.batch_idx());
  }
  void gather_of_all(muster::Step& step) { gather(step, 0, step.world_size(), step.rank()); }
  void gather(muster::Step& step, int64_t first, int64_t present, int64_t mine) {
    if (options_.trouble != Trouble::gather) {
      return;
    }
    ++gathers_;
    const auto all = step.all_gather(mine);
    bool right = std::ssize(all) == present;
    for (size_t i = 0; right && i < all.size(); ++i) {
      right = all[i] == first + static_cast<int64_t>(i);
    }
    muster::check(right, muster::ErrorKind::user, "gathered {} of {} ranks", all.size(), present);
  }

  ModelOptions options_;
  int64_t batches_;
  at::Tensor a_weight_, a_bias_, scale_, shift_, b_weight_, b_bias_;
  at::Tensor rare_{}, mean_{}, var_{};
  muster::SyncBatchNorm norm_{nullptr};
  bool skips_norm_ = false;
  std::string steps_{};
  int64_t gathers_ = 0;
};

/// Augmented with what each epoch draws for the sample.
Sample sample(int64_t index, muster::Rng& rng) {
  muster::Rng own{{17, static_cast<uint64_t>(index)}};
  at::Tensor x = at::empty({8});
  for (int64_t i = 0; i < 8; ++i) {
    x.mutable_data_ptr<float>()[i] = static_cast<float>(own.normal() + 0.1 * rng.normal());
  }
  return {x, (x.sum() * 0.3 + x.max()).reshape({1})};
}

}  // namespace

int main(int argc, char** argv) {
  return muster::run(argc, argv, [](muster::Cli& cli) {
    const auto [model, data] = cli.options<ModelOptions, DataOptions>();
    const muster::Loader<Sample> train{muster::make_dataset(data.samples, sample),
                                       {.batch_size = data.batch_size, .shuffle = true}};
    const muster::Loader<Sample> val{muster::make_dataset(5, sample), {.batch_size = 2}};
    Net net{model, train.size().value()};
    cli.run(net, muster::DataModule<Sample>{.train_dataloader = train, .val_dataloader = val});
    if (!model.out.empty()) {
      net.write_down(cli.trainer().group().rank());
    }
  });
}
