#pragma once

#include <cstdint>
#include <vector>

namespace muster {

struct SamplerOptions {
  /// Samples a batch; the last one of an epoch may have fewer.
  int64_t batch_size = 1;
  /// A new order each epoch, keyed by (seed, epoch); false: the data set's own order.
  bool shuffle = false;
  /// Leaves out a last batch that is not full.
  bool drop_last = false;
  /// Key of the orders.
  uint64_t seed = 0;
};

/// The one list of batches that a single process has, whatever the number of ranks: batch k holds
/// the samples at places k * batch_size and on of the epoch's order, and belongs to rank k mod W.
class Sampler {
 public:
  /// For a data set of `samples` samples. Error of kind `usage` for a batch size below 1.
  Sampler(int64_t samples, const SamplerOptions& options);

  /// Batches an epoch.
  [[nodiscard]] int64_t batches() const;
  /// Samples in batch `k`, 0 <= k < batches().
  [[nodiscard]] int64_t samples_in(int64_t k) const;
  /// Every index of the data set once, in the order of epoch `epoch` >= 0.
  [[nodiscard]] std::vector<int64_t> order(int64_t epoch) const;
  /// The indices in batch `k` of an epoch whose `order` is given.
  [[nodiscard]] std::vector<int64_t> batch(const std::vector<int64_t>& order, int64_t k) const;

 private:
  int64_t samples_;
  SamplerOptions options_;
};

/// How many of the batches k = rank, rank + world, ... are below `batches`: the share of a rank.
int64_t batches_of_rank(int64_t batches, int rank, int world);

}  // namespace muster
