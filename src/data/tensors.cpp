#include <muster/data/tensors.h>

#include <cstdint>

namespace muster {

namespace {

constexpr uintptr_t alignment = 64;

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % alignment == 0;
}

}  // namespace

at::Tensor in_aligned_memory(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return tensor;
  }
  at::Tensor data = tensor.requires_grad() ? tensor.detach() : tensor;
  if (!data.device().is_cpu() || data.layout() != at::kStrided || data.is_quantized()) {
    return data;
  }
  // A copy keeps the strides only where there are no gaps, so that a tensor with gaps is copied
  // wherever it lies: its layout must not depend on its address.
  return data.is_non_overlapping_and_dense() && is_aligned(data) ? data : data.clone();
}

at::Tensor on_device(const at::Tensor& tensor, at::Device device) {
  return tensor.defined() ? tensor.to(device) : tensor;
}

at::Tensor in_dtype(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() && tensor.is_floating_point() ? tensor.to(dtype) : tensor;
}

}  // namespace muster
