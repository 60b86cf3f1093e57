#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster {

/// The order in which an epoch takes the samples of a data set. Every rank asks for the order of
/// all ranks together and must get the same one, so all chance comes from `seed` and `epoch`.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Samples an epoch; the same at every call and on every rank.
  [[nodiscard]] virtual int64_t size() const = 0;
  /// The `size()` indices of epoch `epoch` >= 0. Some may be left out, and some may repeat (where
  /// metrics or predictions are keyed by index a repeated one is an Error).
  [[nodiscard]] virtual std::vector<int64_t> order(uint64_t seed, int64_t epoch) const = 0;
};

/// Every index once: the data set's own order.
class SequentialSampler : public Sampler {
 public:
  /// Error of kind `usage` for fewer than 0 samples.
  explicit SequentialSampler(int64_t samples);
  [[nodiscard]] int64_t size() const override { return samples_; }
  [[nodiscard]] std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  int64_t samples_;
};

/// Every index once, in a new order each epoch.
class RandomSampler : public Sampler {
 public:
  /// Error of kind `usage` for fewer than 0 samples.
  explicit RandomSampler(int64_t samples);
  [[nodiscard]] int64_t size() const override { return samples_; }
  [[nodiscard]] std::vector<int64_t> order(uint64_t seed, int64_t epoch) const override;

 private:
  int64_t samples_;
};

/// The whole list of batches of an epoch, for those who compose batches themselves. As Sampler, it
/// gives every rank the list of all ranks together.
class BatchSampler {
 public:
  virtual ~BatchSampler() = default;

  /// Batches an epoch; the same at every call and on every rank.
  [[nodiscard]] virtual int64_t size() const = 0;
  /// The indices of each of the `size()` batches of epoch `epoch` >= 0; none is empty.
  [[nodiscard]] virtual std::vector<std::vector<int64_t>> batches(uint64_t seed,
                                                                  int64_t epoch) const = 0;
};

/// The list of batches of one epoch that a single process has, whatever the number of ranks: batch
/// k belongs to rank k mod W.
class BatchPlan {
 public:
  /// Cuts an order into batches of `batch_size` >= 1; the last may have fewer, and is left out then
  /// with `drop_last`.
  BatchPlan(std::vector<int64_t> order, int64_t batch_size, bool drop_last);
  /// Error of kind `usage` for a batch without indices.
  explicit BatchPlan(const std::vector<std::vector<int64_t>>& batches);

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// The indices of batch `k`, 0 <= k < size().
  [[nodiscard]] std::span<const int64_t> batch(int64_t k) const;
  /// Error of kind `usage` that names an index which a data set of `samples` does not have.
  void check_indices(int64_t samples) const;

 private:
  std::vector<int64_t> order_{};
  /// Where in the order each batch ends.
  std::vector<int64_t> ends_{};
};

/// Batches that a `BatchPlan` of `samples` indices has.
int64_t batches_of_samples(int64_t samples, int64_t batch_size, bool drop_last);

/// How many of the batches k = rank, rank + world, ... are below `batches`: the share of a rank.
int64_t batches_of_rank(int64_t batches, int rank, int world);

}  // namespace muster
