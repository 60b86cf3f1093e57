#pragma once

#include "run_fixture.h"

#include <muster/train/callback.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tanh.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// A tiny regression, trained by Trainer::fit.
namespace muster::test {

struct Point {
  int64_t number = 0;
  at::Tensor x;  ///< 4 numbers
  at::Tensor y;  ///< 1 number
};

/// Reproducible numbers in [-1, 1).
inline at::Tensor some_numbers(const std::vector<int64_t>& shape, int64_t seed) {
  at::Tensor out = at::empty(shape, at::kDouble);
  auto* values = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    values[i] = std::remainder(static_cast<double>((i + 1) * (seed + 7)) * 0.7548776662466927, 2.0);
  }
  return out;
}

inline std::vector<Point> points(int64_t count, at::ScalarType dtype = at::kDouble) {
  std::vector<Point> out;
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor x = some_numbers({4}, i + 20);
    out.push_back({i, x.to(dtype), (x.sum() * x.max()).reshape({1}).to(dtype)});
  }
  return out;
}

/// Two layers. What tests want to see or change is a member.
class Regression : public Module<Point> {
 public:
  explicit Regression(at::ScalarType dtype = at::kDouble) {
    const auto parameter = [&](const char* name, const std::vector<int64_t>& shape, int64_t seed) {
      return register_parameter(name, (some_numbers(shape, seed) * 0.5).to(dtype));
    };
    a_weight_ = parameter("a_weight", {8, 4}, 1);
    a_bias_ = parameter("a_bias", {8}, 2);
    b_weight_ = parameter("b_weight", {1, 8}, 3);
    b_bias_ = parameter("b_bias", {1}, 4);
  }

  std::function<Optimizers(Regression&)> optimizers = [](Regression& module) {
    return Optimizers{.optimizer = std::make_shared<torch::optim::SGD>(
                          module.parameters(), torch::optim::SGDOptions{0.05}.momentum(0.9))};
  };
  /// Changes the loss of a batch.
  std::function<at::Tensor(const at::Tensor&, const Batch&, Step&)> change_loss{};
  std::function<void(Step&)> in_validation{};
  using ModuleBase::register_metric;

  at::Tensor forward(const at::Tensor& x) {
    return at::linear(at::tanh(at::linear(x, a_weight_, a_bias_)), b_weight_, b_bias_);
  }
  at::Tensor training_step(const Batch& batch, Step& step) override {
    auto loss = at::mse_loss(forward(batch.stack(&Point::x)), batch.stack(&Point::y));
    if (change_loss) loss = change_loss(loss, batch, step);
    step.log("train/loss", loss);
    return loss;
  }
  void validation_step(const Batch& batch, Step& step) override {
    if (in_validation) in_validation(step);
    step.log("val/loss", at::mse_loss(forward(batch.stack(&Point::x)), batch.stack(&Point::y)));
  }
  Optimizers configure_optimizers() override { return optimizers(*this); }

  /// All parameters as one row of float64.
  [[nodiscard]] at::Tensor flat() const {
    std::vector<at::Tensor> parts;
    for (const auto& parameter : parameters()) {
      parts.push_back(parameter.detach().flatten().to(at::kDouble));
    }
    return at::cat(parts).clone();
  }

 private:
  at::Tensor a_weight_, a_bias_, b_weight_, b_bias_;
};

/// Notes what a training tells its callbacks.
class Recorder : public Callback {
 public:
  std::vector<std::string> events{};
  /// Called at each of them.
  std::function<void(const std::string& event, const Progress&)> then{};

  void on_start(const Progress& p) override { note("start", p); }
  void on_epoch_start(const Progress& p) override { note("epoch_start", p); }
  void on_before_optimizer_step(const Progress& p) override { note("before_step", p); }
  void on_batch_end(const Progress& p) override { note("batch_end", p); }
  void on_epoch_end(const Progress& p, const Report& /*report*/) override { note("epoch_end", p); }
  void on_end(const Progress& p) override { note("end", p); }

  [[nodiscard]] int64_t count(const std::string& event) const {
    return std::count(events.begin(), events.end(), event);
  }

 private:
  void note(const std::string& event, const Progress& p) {
    events.push_back(std::string{to_string(p.stage)} + "." + event);
    if (then) then(events.back(), p);
  }
};

/// The largest difference of two rows of parameters.
inline double difference(const at::Tensor& left, const at::Tensor& right) {
  return (left - right).abs().max().item<double>();
}

}  // namespace muster::test
