#pragma once

#include <muster/data/batch.h>
#include <muster/metrics/metric.h>
#include <muster/train/optimizers.h>
#include <muster/train/step.h>

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// The part of a Module that does not depend on the types of its data.
class ModuleBase : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;

  /// Hooks around a stage. `setup` comes first and `teardown` last.
  virtual void setup(Step& /*step*/) {}
  virtual void teardown(Step& /*step*/) {}

  /// For `fit`: the optimizer of the parameters, and schedulers of its rates.
  virtual Optimizers configure_optimizers();
  virtual void on_fit_start(Step& /*step*/) {}
  virtual void on_train_start(Step& /*step*/) {}
  virtual void on_train_epoch_start(Step& /*step*/) {}
  /// On every rank, with the gradients of the whole step, not yet clipped.
  virtual void on_before_optimizer_step(torch::optim::Optimizer& /*optimizer*/, Step& /*step*/) {}
  virtual void on_train_epoch_end(Step& /*step*/) {}
  virtual void on_train_end(Step& /*step*/) {}
  virtual void on_fit_end(Step& /*step*/) {}

  /// What the module wants kept in a checkpoint beside its tensors. On rank 0, without collectives.
  virtual Value on_save_checkpoint() { return {}; }
  /// What `on_save_checkpoint` gave, after the tensors were loaded.
  virtual void on_load_checkpoint(const Value& /*saved*/) {}

  virtual void on_validation_model_eval(Step& /*step*/) { enter_eval(); }
  virtual void on_validation_start(Step& /*step*/) {}
  virtual void on_validation_epoch_start(Step& /*step*/) {}
  virtual void on_validation_epoch_end(Step& /*step*/) {}
  virtual void on_validation_end(Step& /*step*/) {}
  virtual void on_validation_model_train(Step& /*step*/) { leave_eval(); }

  virtual void on_test_model_eval(Step& /*step*/) { enter_eval(); }
  virtual void on_test_start(Step& /*step*/) {}
  virtual void on_test_epoch_start(Step& /*step*/) {}
  virtual void on_test_epoch_end(Step& /*step*/) {}
  virtual void on_test_end(Step& /*step*/) {}
  virtual void on_test_model_train(Step& /*step*/) { leave_eval(); }

  virtual void on_predict_model_eval(Step& /*step*/) { enter_eval(); }
  virtual void on_predict_start(Step& /*step*/) {}
  virtual void on_predict_epoch_start(Step& /*step*/) {}
  virtual void on_predict_epoch_end(Step& /*step*/) {}
  virtual void on_predict_end(Step& /*step*/) {}
  virtual void on_predict_model_train(Step& /*step*/) { leave_eval(); }

  /// Metrics that the trainer merges over ranks at an epoch's end and resets before the next one;
  /// values are reported as NAME/VALUE.
  [[nodiscard]] const std::vector<std::pair<std::string, Metric*>>& metrics() const {
    return metrics_;
  }

 protected:
  /// `metric` must live as long as the module; names are unique, and as `Step::log` takes them.
  void register_metric(std::string name, Metric& metric);

  [[noreturn]] static void missing(const char* step);

  /// Puts the module and all below it into evaluation mode.
  void enter_eval();
  /// Gives the module and each one below it the mode it had before `enter_eval`, so that a part
  /// that is kept in evaluation mode while training (frozen BatchNorm) stays so.
  void leave_eval();

 private:
  bool was_training_ = true;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
  std::vector<std::pair<std::string, Metric*>> metrics_;
};

/// For modules that predict nothing.
struct NoOutput {};

/// The user's class: a network and what to do with a batch. `Sample` is a plain struct; `Output` is
/// what predict_step gives for a sample. Hooks run on the rank that has the batch, in Lightning's
/// order: setup, on_STAGE_model_eval, on_STAGE_start, on_STAGE_epoch_start, for each batch
/// (on_before_batch_transfer, transfer_batch_to_device, on_after_batch_transfer,
/// on_STAGE_batch_start, STAGE_step, on_STAGE_batch_end), on_STAGE_epoch_end, on_STAGE_end,
/// on_STAGE_model_train, teardown. Those of fit are in docs/training.md. Every hook may log. A
/// module holds no Trainer.
template <typename SampleType, typename OutputType = NoOutput>
class Module : public ModuleBase {
 public:
  using Sample = SampleType;
  using Output = OutputType;
  using Batch = muster::Batch<SampleType>;
  using ModuleBase::ModuleBase;

  virtual void on_before_batch_transfer(Batch& /*batch*/, Step& /*step*/) {}
  /// Moves the batch to where the module computes.
  virtual void transfer_batch_to_device(Batch& batch, Step& step) {
    if (!step.device().is_cpu()) {
      batch = batch.to(step.device());
    }
  }
  virtual void on_after_batch_transfer(Batch& /*batch*/, Step& /*step*/) {}

  virtual void on_train_batch_start(const Batch& /*batch*/, Step& /*step*/) {}
  /// The loss: the mean over the batch's samples, one number that depends on the parameters.
  virtual at::Tensor training_step(const Batch& /*batch*/, Step& /*step*/) {
    missing("training_step");
  }
  /// After the optimizer step, where the batch is of the last round of that step, else after its
  /// own backward; `loss` is what training_step gave, without its graph.
  virtual void on_train_batch_end(const at::Tensor& /*loss*/, const Batch& /*batch*/,
                                  Step& /*step*/) {}

  virtual void on_validation_batch_start(const Batch& /*batch*/, Step& /*step*/) {}
  virtual void validation_step(const Batch& /*batch*/, Step& /*step*/) {
    missing("validation_step");
  }
  virtual void on_validation_batch_end(const Batch& /*batch*/, Step& /*step*/) {}

  virtual void on_test_batch_start(const Batch& /*batch*/, Step& /*step*/) {}
  virtual void test_step(const Batch& /*batch*/, Step& /*step*/) { missing("test_step"); }
  virtual void on_test_batch_end(const Batch& /*batch*/, Step& /*step*/) {}

  virtual void on_predict_batch_start(const Batch& /*batch*/, Step& /*step*/) {}
  /// One output a sample, in the batch's order.
  virtual std::vector<Output> predict_step(const Batch& /*batch*/, Step& /*step*/) {
    missing("predict_step");
  }
  virtual void on_predict_batch_end(const std::vector<Output>& /*outputs*/, const Batch& /*batch*/,
                                    Step& /*step*/) {}
};

}  // namespace muster
