#include <muster/base/check.h>
#include <muster/value/tensor.h>

#include "src/metrics/host_values_internal.h"

namespace muster {

std::vector<double> host_doubles(const at::Tensor& tensor) {
  const auto host = dense_on_cpu(tensor).to(at::kDouble).contiguous();
  const auto* values = host.const_data_ptr<double>();
  return {values, values + host.numel()};
}

std::vector<int64_t> host_integers(const at::Tensor& tensor) {
  const auto host = dense_on_cpu(tensor).to(at::kLong).contiguous();
  const auto* values = host.const_data_ptr<int64_t>();
  return {values, values + host.numel()};
}

void check_numbers(const at::Tensor& preds, const at::Tensor& target) {
  for (const auto* tensor : {&preds, &target}) {
    check(tensor->defined() && !tensor->is_complex() && tensor->scalar_type() != at::kBool,
          "predictions and target must be of integers or floating, not {}", describe(*tensor));
  }
  check(preds.sizes() == target.sizes(),
        "predictions and target must have one shape, not {} and {}", describe(preds),
        describe(target));
}

}  // namespace muster
