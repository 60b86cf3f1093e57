#pragma once

#include "fit_module.h"

#include <muster/train/sync_batch_norm.h>

#include <torch/nn/modules/batchnorm.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// A network with batch normalization, and its training at several numbers of ranks.
namespace muster::test {

/// Linear, BatchNorm, tanh, BatchNorm, Linear, with the layers of torch or of Muster.
template <typename Norm>
class Normed : public Module<Point> {
 public:
  Normed()
      : first{register_module("first", Norm{8})},
        second{register_module(
            "second", Norm{torch::nn::BatchNorm1dOptions(8).momentum(std::nullopt).eps(0.01)})} {
    a_ = register_parameter("a", some_numbers({8, 4}, 1) * 0.5);
    b_ = register_parameter("b", some_numbers({1, 8}, 2) * 0.5);
    to(at::kDouble);
  }

  /// Instead of `loss`.
  std::function<at::Tensor(Normed&, const Batch&, Step&)> other_loss{};
  bool gathers_at_batch_end = false;
  /// Running averages at the last epoch's end.
  at::Tensor averages{};
  Norm first;
  Norm second;

  at::Tensor hidden(const at::Tensor& x) { return at::tanh(first(at::linear(x, a_))); }
  at::Tensor loss(const at::Tensor& hidden, const Batch& batch) {
    return at::mse_loss(at::linear(hidden, b_), batch.stack(&Point::y));
  }
  at::Tensor loss(const Batch& batch) {
    return loss(second(hidden(batch.stack(&Point::x))), batch);
  }
  at::Tensor training_step(const Batch& batch, Step& step) override {
    return other_loss ? other_loss(*this, batch, step) : loss(batch);
  }
  void on_train_batch_end(const at::Tensor& /*loss*/, const Batch& batch, Step& step) override {
    if (gathers_at_batch_end) step.all_gather(batch.batch_idx());
  }
  void on_train_epoch_end(Step& /*step*/) override { averages = flat(buffers()); }
  void validation_step(const Batch& batch, Step& step) override {
    step.log("val/loss", loss(batch));
  }
  Optimizers configure_optimizers() override {
    return {std::make_shared<torch::optim::SGD>(parameters(), 0.05)};
  }
  static at::Tensor flat(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> parts;
    parts.reserve(tensors.size());
    for (const auto& t : tensors) parts.push_back(t.detach().flatten().to(at::kDouble));
    return at::cat(parts);
  }

 private:
  at::Tensor a_, b_;
};

using OfTorch = Normed<torch::nn::BatchNorm1d>;
using OfMuster = Normed<SyncBatchNorm>;

class SyncBatchNormTest : public RunTest {
 protected:
  template <typename Net>
  struct Plan {
    int ranks = 1;
    Loader<Point> train;
    int64_t accumulate = 1;
    std::function<void(Net&)> set{};
    std::function<void(TrainerOptions&)> set_options{};
  };
  struct End {
    at::Tensor parameters{};
    at::Tensor averages{};  ///< at the last epoch's end
    at::Tensor left{};      ///< the same when all is over
    double val_loss = 0.0;
  };

  /// Each rank's end of two epochs.
  template <typename Net>
  std::vector<End> fit(const Plan<Net>& plan, int64_t validated = 0) const {
    auto options = this->options("run");
    options.max_epochs = 2;
    options.accumulate_grad_batches = plan.accumulate;
    options.enable_checkpointing = options.enable_model_summary = false;
    if (plan.set_options) plan.set_options(options);
    const Loader<Point> val{points(validated), {.batch_size = 2}};
    std::vector<End> ends(static_cast<size_t>(plan.ranks));
    run_threads(plan.ranks, [&](Group& group) {
      Trainer trainer{options, group};
      Net net;
      if (plan.set) plan.set(net);
      const auto loaders = validated > 0 ? LoaderList<Point>{val} : LoaderList<Point>{};
      const Report report = trainer.fit(net, plan.train, loaders);
      ends[static_cast<size_t>(group.rank())] = {Net::flat(net.parameters()), net.averages,
                                                 Net::flat(net.buffers()),
                                                 report.get("val/loss").value_or(0.0)};
      group.finish();
    });
    return ends;
  }

  void expect_as_one(const Plan<OfTorch>& alone, const Plan<OfMuster>& together,
                     int64_t validated = 0) const {
    const End one = fit(alone, validated)[0];
    const auto ranks = fit(together, validated);
    for (const auto& rank : ranks) {
      EXPECT_LT(difference(rank.parameters, one.parameters), 1e-12);
      EXPECT_LT(difference(rank.averages, one.averages), 1e-12);
      EXPECT_NEAR(rank.val_loss, one.val_loss, 1e-12);
      EXPECT_TRUE(rank.averages.equal(ranks[0].averages)) << "running averages differ by rank";
    }
  }
  static Loader<Point> in_order(int64_t count, int64_t batch_size) {
    return Loader<Point>{points(count), {.batch_size = batch_size}};
  }
  static Loader<Point> in_batches(int64_t count, std::vector<std::vector<int64_t>> batches) {
    class These : public BatchSampler {
     public:
      explicit These(std::vector<std::vector<int64_t>> batches) : batches_{std::move(batches)} {}
      [[nodiscard]] int64_t size() const override { return std::ssize(batches_); }
      [[nodiscard]] std::vector<std::vector<int64_t>> batches(uint64_t, int64_t) const override {
        return batches_;
      }

     private:
      std::vector<std::vector<int64_t>> batches_;
    };
    return Loader<Point>{make_dataset(points(count)), std::make_shared<These>(std::move(batches))};
  }
  /// Of 14 and 8 points.
  static Loader<Point> shards() {
    return Loader<Point>{
        make_sharded([](const StreamContext& context) {
          const int64_t end = context.rank == 0 ? 14 : 22;
          return [end, i = int64_t{context.rank == 0
                                       ? 0
                                       : 14}]() mutable -> std::optional<IndexedSample<Point>> {
            if (i == end) return std::nullopt;
            const int64_t index = i++;
            return IndexedSample<Point>{index, points(22)[static_cast<size_t>(index)]};
          };
        }),
        {.batch_size = 2}};
  }
};

}  // namespace muster::test
