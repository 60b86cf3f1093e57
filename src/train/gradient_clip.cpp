#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <muster/base/check.h>
#include <muster/train/gradient_clip.h>

#include <vector>

namespace muster {
namespace {

std::vector<at::Tensor> gradients_of(std::span<const at::Tensor> parameters) {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

}  // namespace

double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm) {
  check(max_norm >= 0.0, "the bound of the gradients' norm is at least 0, not {}", max_norm);
  const c10::AutoGradMode without_gradients{false};
  const auto gradients = gradients_of(parameters);
  if (gradients.empty()) return 0.0;
  const auto total = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2);
  const auto factor = total.add(1e-6).reciprocal_().mul_(max_norm).clamp_max_(1.0);
  if (factor.item<double>() != 1.0) {
    at::_foreach_mul_(gradients, factor);
  }
  return total.item<double>();
}

void clip_grad_value(std::span<const at::Tensor> parameters, double bound) {
  check(bound >= 0.0, "the bound of the gradients' numbers is at least 0, not {}", bound);
  const c10::AutoGradMode without_gradients{false};
  const auto gradients = gradients_of(parameters);
  if (gradients.empty()) return;
  at::_foreach_clamp_min_(gradients, -bound);
  at::_foreach_clamp_max_(gradients, bound);
}

}  // namespace muster
