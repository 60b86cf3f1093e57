#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace muster {

/// The tensor's numbers on the host, row-major.
std::vector<double> host_doubles(const at::Tensor& tensor);
std::vector<int64_t> host_integers(const at::Tensor& tensor);

/// Error of kind `usage` unless both are of real numbers and have one shape.
void check_numbers(const at::Tensor& preds, const at::Tensor& target);

}  // namespace muster
