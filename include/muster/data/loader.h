#pragma once

#include <muster/data/batch.h>
#include <muster/data/dataset.h>
#include <muster/data/prefetch.h>
#include <muster/data/sampler.h>
#include <muster/data/share.h>
#include <muster/data/tensors.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {

struct LoaderOptions {
  /// Samples a batch; the last one of an epoch may have fewer.
  int64_t batch_size = 1;
  /// A new order each epoch, keyed by (seed, epoch); false: the data set's own order.
  bool shuffle = false;
  /// Leaves out a last batch that is not full.
  bool drop_last = false;
  /// Threads that load; 0 loads in the caller's thread.
  int num_workers = 2;
  /// Batches ready or under way at most, on each rank.
  int64_t prefetch = 4;
  /// Key of the orders and of the samples' random numbers; none: the Trainer's seed.
  std::optional<uint64_t> seed{};
  /// The data set's name in messages.
  std::string name{};
};

namespace detail {

void check_loader(const LoaderOptions& options, bool has_dataset);

/// Batches of all ranks that `share` names, of `batches`. Error of kind `usage` for a share that
/// makes no sense.
int64_t batches_left(const Share& share, int64_t batches);

/// Throws the exception that is being handled as an Error that names the sample; to be called in a
/// catch block.
[[noreturn]] void rethrow_for_sample(int64_t index, const std::string& name);

}  // namespace detail

/// The batches of one epoch that belong to one rank, in order. Movable; used by one thread at a
/// time. The destructor cancels what is under way: it waits for the samples being loaded at most.
template <typename S>
class Epoch {
 public:
  /// `batches`: how many `load` makes: its numbers are 0, 1, ... within this rank.
  Epoch(int64_t batches, Prefetch::Make load, const PrefetchOptions& options)
      : size_{batches}, prefetch_{batches, std::move(load), options} {}

  /// How many batches this rank has in all.
  [[nodiscard]] int64_t size() const { return size_; }

  /// The next batch, or nothing after the last. What a sample threw comes out here as an Error that
  /// names the sample, after the batches before it; of the kind it had, or `user` for a foreign
  /// exception.
  std::optional<Batch<S>> next() {
    const auto item = std::static_pointer_cast<Batch<S>>(prefetch_.next());
    return item ? std::optional<Batch<S>>{std::move(*item)} : std::nullopt;
  }

 private:
  int64_t size_;
  Prefetch prefetch_;
};

/// Batches of a data set, loaded ahead by threads. Which batches there are, their order and their
/// content depend on the data set, batch_size, shuffle, drop_last, seed and epoch alone; neither on
/// ranks nor on threads. A copy is cheap and shares the data set.
///
/// Each tensor of a sample is handed out in memory that is aligned to 64 bytes (data/tensors.h).
template <typename S>
class Loader {
 public:
  /// Error of kind `usage` for a null pointer or an option out of range.
  explicit Loader(std::shared_ptr<const Dataset<S>> dataset, LoaderOptions options = {})
      : dataset_{std::move(dataset)}, options_{std::move(options)}, sampler_{make_sampler(0)} {}

  explicit Loader(std::vector<S> samples, LoaderOptions options = {})
      : Loader{make_dataset(std::move(samples)), std::move(options)} {}

  /// Batches an epoch, of all ranks together.
  [[nodiscard]] int64_t size() const { return sampler_.batches(); }
  [[nodiscard]] const Sampler& sampler() const { return sampler_; }
  [[nodiscard]] const LoaderOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const Dataset<S>>& dataset() const { return dataset_; }

  /// The batches of epoch `epoch` >= 0 that `share` names, in that order. Loading starts at once.
  /// The loader need not outlive the result.
  [[nodiscard]] Epoch<S> batches(int64_t epoch = 0, const Share& share = {}) const {
    const int64_t left = detail::batches_left(share, size());
    const uint64_t key = options_.seed.value_or(share.seed);
    const Sampler sampler = make_sampler(key, share.shuffle);
    auto load = [dataset = dataset_, sampler, key, name = options_.name,
                 order = sampler.order(epoch), epoch, share](
                    int64_t position, const std::atomic<bool>& cancelled) -> std::shared_ptr<void> {
      const int64_t k = share.first + share.rank + position * share.world_size;
      std::vector<int64_t> indices = sampler.batch(order, k);
      std::vector<S> samples;
      samples.reserve(indices.size());
      for (const int64_t index : indices) {
        if (cancelled) {
          return nullptr;
        }
        const Rng rng{key, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)};
        samples.push_back(load_sample(*dataset, index, rng, name));
      }
      return std::make_shared<Batch<S>>(k, std::move(indices), std::move(samples));
    };
    return {batches_of_rank(left, share.rank, share.world_size),
            std::move(load),
            {.workers = options_.num_workers, .ahead = options_.prefetch}};
  }

 private:
  [[nodiscard]] Sampler make_sampler(uint64_t seed, bool shuffle = true) const {
    detail::check_loader(options_, dataset_ != nullptr);
    return {dataset_->size(),
            {.batch_size = options_.batch_size,
             .shuffle = options_.shuffle && shuffle,
             .drop_last = options_.drop_last,
             .seed = options_.seed.value_or(seed)}};
  }

  static S load_sample(const Dataset<S>& dataset, int64_t index, Rng rng, const std::string& name) {
    try {
      S sample = dataset.get(index, rng);
      replace_tensors(sample, in_aligned_memory);
      return sample;
    } catch (...) {
      detail::rethrow_for_sample(index, name);
    }
  }

  std::shared_ptr<const Dataset<S>> dataset_;
  LoaderOptions options_;
  Sampler sampler_;
};

}  // namespace muster
