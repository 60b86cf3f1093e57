#include "doing.h"

#include <muster/train/trainer.h>

#include <ATen/ops/zeros.h>
#include <torch/optim/sgd.h>

namespace muster::test {

namespace {

class Acting : public Module<Number, Number> {
 public:
  explicit Acting(const Doing& doing) : doing_{doing} {
    weight_ = register_parameter("weight", at::zeros({1}, at::kDouble));
    for (const auto& [name, metric] : doing.metrics) register_metric(name, *metric);
  }

  void on_validation_epoch_start(Step& step) override { around(doing_.at_start, step); }
  void validation_step(const Batch& batch, Step& step) override { within(batch, step); }
  void on_validation_epoch_end(Step& step) override { around(doing_.at_end, step); }
  void test_step(const Batch& batch, Step& step) override { within(batch, step); }
  void on_test_epoch_end(Step& step) override { around(doing_.at_end, step); }
  void on_predict_epoch_start(Step& step) override { around(doing_.at_start, step); }
  std::vector<Number> predict_step(const Batch& batch, Step& step) override {
    within(batch, step);
    std::vector<Number> out;
    for (const auto& sample : batch.samples()) out.push_back({sample.number, sample.odd});
    return out;
  }
  void on_predict_epoch_end(Step& step) override { around(doing_.at_end, step); }
  at::Tensor training_step(const Batch& batch, Step& step) override {
    if (doing_.in_training) doing_.in_training(batch, step);
    return (weight_ * batch.stack(&Number::number).to(at::kDouble).mean()).sum();
  }
  void on_train_epoch_end(Step& step) override { around(doing_.at_training_end, step); }
  Optimizers configure_optimizers() override {
    sgd_ = std::make_shared<torch::optim::SGD>(parameters(), 1.0);
    Optimizers optimizers{.optimizer = sgd_};
    if (!doing_.plateau.empty()) {
      optimizers.schedulers.push_back(
          {.scheduler = reduce_lr_on_plateau(*sgd_, {.patience = 1}), .monitor = doing_.plateau});
    }
    return optimizers;
  }

  [[nodiscard]] double weight() const { return weight_.item<double>(); }
  [[nodiscard]] double rate() const { return sgd_->param_groups()[0].options().get_lr(); }

 private:
  static void around(const std::function<void(Step&)>& hook, Step& step) {
    if (hook) hook(step);
  }
  void within(const Batch& batch, Step& step) const {
    if (doing_.in_batch) doing_.in_batch(batch, step);
  }

  const Doing& doing_;
  at::Tensor weight_{};
  std::shared_ptr<torch::optim::SGD> sgd_{};
};

ReturnPredictions read(const std::string& to) {
  if (to == "none") return ReturnPredictions::none;
  return to == "all" ? ReturnPredictions::all : ReturnPredictions::global_zero;
}

}  // namespace

struct Runner::State {
  Trainer trainer;
};

Runner::Runner(const TrainerOptions& options, const Group& group)
    : state_{new State{.trainer = Trainer{options, group}}} {}
Runner::~Runner() = default;

Report Runner::validate(const Doing& doing, const Loader<Number>& loader) {
  Acting module{doing};
  return state_->trainer.validate(module, loader);
}

Report Runner::test(const Doing& doing, const Loader<Number>& loader) {
  Acting module{doing};
  return state_->trainer.test(module, loader);
}

std::vector<int64_t> Runner::predict(const Doing& doing, const Loader<Number>& loader,
                                     const std::string& to) {
  Acting module{doing};
  std::vector<int64_t> out;
  for (const auto& sample : state_->trainer.predict(module, loader, read(to))) {
    out.push_back(sample.number);
  }
  return out;
}

void Runner::predict_each(const Doing& doing, const Loader<Number>& loader,
                          const std::function<void(const PredictionKey&, int64_t)>& sink) {
  Acting module{doing};
  state_->trainer.predict_each(module, loader, [&](const PredictionKey& key, const Number& sample) {
    sink(key, sample.number);
  });
}

std::vector<std::filesystem::path> Runner::predict_to_shards(const Doing& doing,
                                                             const Loader<Number>& loader) {
  Acting module{doing};
  return state_->trainer.predict_to_shards(module, loader);
}

Report Runner::fit(Doing& doing, const Loader<Number>& train, const Loader<Number>* val,
                   const std::string& ckpt_path) {
  Acting module{doing};
  const auto loaders = val != nullptr ? LoaderList<Number>{*val} : LoaderList<Number>{};
  Report report = state_->trainer.fit(module, train, loaders, ckpt_path);
  doing.weight = module.weight();
  doing.rate = module.rate();
  return report;
}

void Runner::add_callback(std::shared_ptr<Callback> callback) {
  state_->trainer.add_callback(std::move(callback));
}

Group& Runner::group() { return state_->trainer.group(); }

}  // namespace muster::test
