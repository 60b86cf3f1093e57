#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

namespace muster {

/// "float32", "int64", "bool", ...: the name that Python's torch gives a dtype.
std::string dtype_name(at::ScalarType dtype);

/// "[3, 256, 256]"; "[]" for a scalar.
std::string shape_text(std::span<const int64_t> shape);

/// "float32[3, 256, 256]" for messages and logs, with the device where it is not the CPU;
/// "undefined" for a tensor without content.
std::string describe(const at::Tensor& tensor);

/// The tensor's numbers on the CPU, dense, contiguous, without gradient: the tensor itself where it
/// is that already. Error of kind `usage` for a sparse or quantized tensor.
at::Tensor dense_on_cpu(const at::Tensor& tensor);

}  // namespace muster
