// precision_program IN OUT: a small network under autocast, gradients through the scaler and
// clipped ones, from the tensors of IN to those of OUT. precision_test.py knows the same names.
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <muster/base/format.h>
#include <muster/io/safetensors.h>
#include <muster/train/gradient_clip.h>
#include <muster/train/precision.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using muster::format;
using Tensors = std::map<std::string, at::Tensor>;

at::Tensor number(double value) { return at::full({}, value, at::kDouble); }

void run_network(const Tensors& in, muster::Precision precision, const std::string& name,
                 muster::NamedTensors& out) {
  std::vector<at::Tensor> weights;
  for (const char* key : {"w1", "b1", "w2", "b2"}) {
    weights.push_back(in.at(key).clone().requires_grad_());
  }
  at::Tensor loss;
  {
    const muster::AutocastGuard autocast{precision, in.at("x").device()};
    const auto hidden = at::relu(at::linear(in.at("x"), weights[0], weights[1]));
    loss = at::linear(hidden, weights[2], weights[3]).square().mean();
  }
  const muster::GradScaler scaler;
  (precision == muster::Precision::f16_mixed ? scaler.scale(loss) : loss).backward();
  out.emplace_back(name + ".loss", loss.detach());
  for (size_t i = 0; i < weights.size(); ++i) {
    out.emplace_back(format("{}.{}", name, i), weights[i].grad());
  }
}

/// Gradients "steps.STEP.PARAMETER"; the scaler is another one from step 6 on.
void run_scaler(const Tensors& in, muster::NamedTensors& out) {
  const muster::GradScalerOptions options{
      .init_scale = 1024.0, .growth_factor = 3.0, .backoff_factor = 0.3, .growth_interval = 2};
  auto scaler = std::make_unique<muster::GradScaler>(options);
  for (int step = 0; in.contains(format("steps.{}.0", step)); ++step) {
    std::vector<at::Tensor> parameters;
    for (int i = 0; i < 2; ++i) {
      const auto& gradient = in.at(format("steps.{}.{}", step, i));
      parameters.push_back(at::full(gradient.sizes(), 0.0, gradient.options()).requires_grad_());
      parameters.back().mutable_grad() = gradient.clone();
    }
    const bool found = scaler->unscale(parameters);
    scaler->update(found);
    out.emplace_back(format("found.{}", step), number(found ? 1.0 : 0.0));
    out.emplace_back(format("factor.{}", step), number(scaler->factor()));
    for (int i = 0; i < 2; ++i) {
      out.emplace_back(format("unscaled.{}.{}", step, i), parameters[i].grad());
    }
    if (step == 5) {
      const auto state = scaler->state();
      scaler = std::make_unique<muster::GradScaler>(options);
      scaler->load_state(state);
    }
  }
}

/// Gradients "clip.SET.PARAMETER".
void run_clipping(const Tensors& in, muster::NamedTensors& out) {
  for (int set = 0; in.contains(format("clip.{}.0", set)); ++set) {
    for (const double bound : {0.25, 1.0, 1e4}) {
      std::vector<at::Tensor> by_norm;
      std::vector<at::Tensor> by_value;
      for (int i = 0; in.contains(format("clip.{}.{}", set, i)); ++i) {
        const auto& gradient = in.at(format("clip.{}.{}", set, i));
        for (auto* parameters : {&by_norm, &by_value}) {
          parameters->push_back(
              at::full(gradient.sizes(), 0.0, gradient.options()).requires_grad_());
          parameters->back().mutable_grad() = gradient.clone();
        }
      }
      const std::string name = format("{}.{}", set, bound);
      out.emplace_back("norm." + name, number(muster::clip_grad_norm(by_norm, bound)));
      muster::clip_grad_value(by_value, bound);
      for (size_t i = 0; i < by_norm.size(); ++i) {
        out.emplace_back(format("by_norm.{}.{}", name, i), by_norm[i].grad());
        out.emplace_back(format("by_value.{}.{}", name, i), by_value[i].grad());
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  at::set_num_threads(1);  // their number changes the order of sums
  const auto file = muster::load_safetensors(argv[1]);
  const Tensors in{file.tensors.begin(), file.tensors.end()};
  muster::NamedTensors out;
  run_network(in, muster::Precision::f32_true, "32", out);
  run_network(in, muster::Precision::bf16_mixed, "bf16", out);
  run_network(in, muster::Precision::f16_mixed, "16", out);
  run_scaler(in, out);
  run_clipping(in, out);
  muster::save_safetensors(argv[2], out);
  return 0;
}
