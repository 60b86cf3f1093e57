#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <muster/base/check.h>
#include <muster/data/batch.h>
#include <muster/value/tensor.h>

#include <algorithm>

namespace muster::detail {

namespace {

template <typename T>
at::Tensor to_tensor(const std::vector<T>& numbers, at::ScalarType dtype) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, dtype);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<T>());
  return tensor;
}

bool is_alike(const at::Tensor& left, const at::Tensor& right) {
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         left.device() == right.device();
}

}  // namespace

at::Tensor stack_tensors(const std::vector<at::Tensor>& tensors, const StackContext& context) {
  check(!tensors.empty(), "an empty batch has nothing to stack");
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].defined(), "batch {}: cannot stack '{}': it is undefined in sample {}",
          context.batch_idx, context.field, context.indices[i]);
    if (!is_alike(tensors[i], tensors.front())) {
      fail(
          ErrorKind::usage,
          "batch {}: cannot stack '{}': it is {} in sample {} and {} in sample {}; make them alike "
          "in the data set, use batch_size 1, or take them one by one with batch.list",
          context.batch_idx, context.field, describe(tensors.front()), context.indices.front(),
          describe(tensors[i]), context.indices[i]);
    }
  }
  return at::stack(tensors);
}

at::Tensor stack_numbers(const std::vector<int64_t>& numbers) {
  return to_tensor(numbers, at::kLong);
}

at::Tensor stack_numbers(const std::vector<double>& numbers) {
  return to_tensor(numbers, at::kDouble);
}

at::Tensor stack_numbers(const std::vector<float>& numbers) {
  return to_tensor(numbers, at::kFloat);
}

}  // namespace muster::detail
