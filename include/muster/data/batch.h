#pragma once

#include <ATen/core/Tensor.h>
#include <muster/base/check.h>
#include <muster/data/tensors.h>
#include <muster/value/fields.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster {

namespace detail {

/// What a message says of a batch.
struct StackContext {
  int64_t batch_idx;
  std::string_view field;
  std::span<const int64_t> indices;
};

at::Tensor stack_tensors(const std::vector<at::Tensor>& tensors, const StackContext& context);
at::Tensor stack_numbers(const std::vector<int64_t>& numbers);
at::Tensor stack_numbers(const std::vector<double>& numbers);
at::Tensor stack_numbers(const std::vector<float>& numbers);

/// "image" for &Photo::image; "" where S has no fields.
template <typename S, typename T>
std::string_view name_of(const S& sample, T S::*field) {
  std::string_view found;
  if constexpr (HasFields<S>) {
    for_each_field(sample, [&](std::string_view name, const auto& member) {
      if (static_cast<const void*>(&member) == static_cast<const void*>(&(sample.*field))) {
        found = name;
      }
    });
  }
  return found;
}

}  // namespace detail

/// Samples that are computed together, each with its index in the data set. Copies share tensors.
template <typename S>
class Batch {
 public:
  /// Batch `batch_idx` of the epoch's global list; `samples[i]` is sample `indices[i]` of the data
  /// set.
  Batch(int64_t batch_idx, std::vector<int64_t> indices, std::vector<S> samples)
      : batch_idx_{batch_idx}, indices_{std::move(indices)}, samples_{std::move(samples)} {
    check(indices_.size() == samples_.size(),
          "a batch of {} samples needs as many indices, found {}", samples_.size(),
          indices_.size());
  }

  /// Its number in the list of batches that a single process would have, whatever the number of
  /// ranks.
  [[nodiscard]] int64_t batch_idx() const { return batch_idx_; }
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(samples_.size()); }
  [[nodiscard]] const std::vector<int64_t>& indices() const { return indices_; }
  [[nodiscard]] const std::vector<S>& samples() const { return samples_; }

  /// Each index with its sample: `for (const auto& [index, photo] : batch.indexed())`. The batch
  /// must outlive it.
  [[nodiscard]] std::vector<std::pair<int64_t, const S&>> indexed() const {
    std::vector<std::pair<int64_t, const S&>> pairs;
    pairs.reserve(samples_.size());
    for (size_t i = 0; i < samples_.size(); ++i) {
      pairs.emplace_back(indices_[i], samples_[i]);
    }
    return pairs;
  }

  /// The samples' tensors as one, [size(), ...]. Error of kind `usage` that names two samples when
  /// their shapes, dtypes or devices differ, and for an empty batch.
  [[nodiscard]] at::Tensor stack(at::Tensor S::*field) const {
    const std::string_view name = samples_.empty() ? "" : detail::name_of(samples_.front(), field);
    return detail::stack_tensors(list(field), {batch_idx_, name, indices_});
  }

  /// The samples' numbers as a tensor [size()] on the CPU: int64 of integers and bools, float32 of
  /// float, float64 of double.
  template <typename T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] at::Tensor stack(T S::*field) const {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;
    std::vector<Wide> numbers;
    numbers.reserve(samples_.size());
    for (const S& sample : samples_) {
      numbers.push_back(static_cast<Wide>(sample.*field));
    }
    return detail::stack_numbers(numbers);
  }

  /// The samples' values of a field, one by one.
  template <typename T>
  [[nodiscard]] std::vector<T> list(T S::*field) const {
    std::vector<T> values;
    values.reserve(samples_.size());
    for (const S& sample : samples_) {
      values.push_back(sample.*field);
    }
    return values;
  }

  /// The batch with each tensor on `device`.
  [[nodiscard]] Batch to(at::Device device) const {
    Batch moved = *this;
    for (S& sample : moved.samples_) {
      replace_tensors(sample, [device](const at::Tensor& t) { return on_device(t, device); });
    }
    return moved;
  }

  /// The batch with each floating tensor in the type `dtype`.
  [[nodiscard]] Batch to(at::ScalarType dtype) const {
    Batch converted = *this;
    for (S& sample : converted.samples_) {
      replace_tensors(sample, [dtype](const at::Tensor& t) { return in_dtype(t, dtype); });
    }
    return converted;
  }

 private:
  int64_t batch_idx_;
  std::vector<int64_t> indices_;
  std::vector<S> samples_;
};

}  // namespace muster
