#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace muster {

/// Scales the gradients of all parameters, in place, so that their L2 norm taken together is at
/// most `max_norm` (at least 0); returns the norm before, 0.0 without gradients. As Python's
/// torch.nn.utils.clip_grad_norm_: the factor is max_norm / (norm + 1e-6), never above 1. A norm
/// that is not finite makes gradients 0 or NaN. Parameters without a gradient are passed over; the
/// others' are dense and on one device. Error of kind `usage` for a bound below 0 or NaN.
double clip_grad_norm(std::span<const at::Tensor> parameters, double max_norm);

/// Limits each number of the gradients to [-bound, bound], in place; NaN stays. Parameters and
/// errors as above.
void clip_grad_value(std::span<const at::Tensor> parameters, double bound);

}  // namespace muster
