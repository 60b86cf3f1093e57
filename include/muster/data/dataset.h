#pragma once

#include <muster/base/check.h>
#include <muster/base/random.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster {

/// Samples by index. S is a plain struct with the tensors, texts and numbers of one sample.
template <typename S>
class Dataset {
 public:
  using Sample = S;

  virtual ~Dataset() = default;

  /// The number of samples; the same at every call and on every rank.
  [[nodiscard]] virtual int64_t size() const = 0;

  /// Sample `index`, 0 <= index < size(). Called by several threads at once. All chance must come
  /// from `rng`, whose key is (seed, epoch, index), never from torch's global generator: the sample
  /// is then the same whatever the number of ranks and threads. What it throws reaches the caller
  /// of the loader with the index.
  [[nodiscard]] virtual S get(int64_t index, Rng& rng) const = 0;

  /// Whether `find` may give nothing. A training then learns how many samples a step has from its
  /// ranks.
  [[nodiscard]] virtual bool may_skip() const { return false; }
  /// As `get`, or nothing: the sample (a broken file) is left out of its batch, and counts nowhere.
  /// This is what a loader calls.
  [[nodiscard]] virtual std::optional<S> find(int64_t index, Rng& rng) const {
    return get(index, rng);
  }
};

/// Samples that are in memory. `get` copies the struct; its tensors are shared.
template <typename S>
class InMemoryDataset : public Dataset<S> {
 public:
  explicit InMemoryDataset(std::vector<S> samples) : samples_{std::move(samples)} {}

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  [[nodiscard]] S get(int64_t index, Rng& /*rng*/) const override {
    return samples_.at(static_cast<size_t>(index));
  }

 private:
  std::vector<S> samples_;
};

/// `size` samples, each made by `function(index, rng)`.
template <typename S>
class FunctionDataset : public Dataset<S> {
 public:
  using Function = std::function<S(int64_t index, Rng& rng)>;

  FunctionDataset(int64_t size, Function function) : size_{size}, function_{std::move(function)} {
    check(size >= 0, "a data set has 0 samples or more, found {}", size);
  }

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] S get(int64_t index, Rng& rng) const override { return function_(index, rng); }

 private:
  int64_t size_;
  Function function_;
};

/// As FunctionDataset, of a function that may give nothing: that sample is skipped.
template <typename S>
class SkippingDataset : public Dataset<S> {
 public:
  using Function = std::function<std::optional<S>(int64_t index, Rng& rng)>;

  SkippingDataset(int64_t size, Function function) : size_{size}, function_{std::move(function)} {
    check(size >= 0, "a data set has 0 samples or more, found {}", size);
  }

  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] bool may_skip() const override { return true; }
  [[nodiscard]] std::optional<S> find(int64_t index, Rng& rng) const override {
    return function_(index, rng);
  }
  /// Error of kind `data` for a sample that is skipped.
  [[nodiscard]] S get(int64_t index, Rng& rng) const override {
    std::optional<S> sample = function_(index, rng);
    check(sample.has_value(), ErrorKind::data, "sample {} is skipped", index);
    return std::move(*sample);
  }

 private:
  int64_t size_;
  Function function_;
};

/// Some samples of another data set: sample i is sample indices[i] of that one.
template <typename S>
class Subset : public Dataset<S> {
 public:
  /// Error of kind `usage` for an index that `whole` does not have.
  Subset(std::shared_ptr<const Dataset<S>> whole, std::vector<int64_t> indices)
      : whole_{std::move(whole)}, indices_{std::move(indices)} {
    check(whole_ != nullptr, "a subset needs a data set, found a null pointer");
    for (const int64_t index : indices_) {
      check(index >= 0 && index < whole_->size(),
            "index {} of a subset is outside of its data set of {} samples", index, whole_->size());
    }
  }

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  [[nodiscard]] S get(int64_t index, Rng& rng) const override {
    return whole_->get(indices_.at(static_cast<size_t>(index)), rng);
  }
  [[nodiscard]] bool may_skip() const override { return whole_->may_skip(); }
  [[nodiscard]] std::optional<S> find(int64_t index, Rng& rng) const override {
    return whole_->find(indices_.at(static_cast<size_t>(index)), rng);
  }

 private:
  std::shared_ptr<const Dataset<S>> whole_;
  std::vector<int64_t> indices_;
};

/// The samples as a data set.
template <typename S>
std::shared_ptr<const Dataset<S>> make_dataset(std::vector<S> samples) {
  return std::make_shared<InMemoryDataset<S>>(std::move(samples));
}

namespace detail {

template <typename T>
struct Plain {
  using Type = T;
  using DatasetType = FunctionDataset<T>;
};
template <typename S>
struct Plain<std::optional<S>> {
  using Type = S;
  using DatasetType = SkippingDataset<S>;
};

}  // namespace detail

/// `size` samples, each made by `function(index, rng)`; called by several threads at once. Where it
/// returns a std::optional, nothing skips the sample.
template <typename Function, typename R = std::invoke_result_t<Function&, int64_t, Rng&>,
          typename S = typename detail::Plain<R>::Type>
std::shared_ptr<const Dataset<S>> make_dataset(int64_t size, Function function) {
  return std::make_shared<typename detail::Plain<R>::DatasetType>(size, std::move(function));
}

}  // namespace muster
