#pragma once

#include <muster/data/batch.h>
#include <muster/data/dataset.h>
#include <muster/data/iterable.h>
#include <muster/data/prefetch.h>
#include <muster/data/sampler.h>
#include <muster/data/share.h>
#include <muster/data/stream_batches.h>
#include <muster/data/tensors.h>

#include <algorithm>
#include <cstdint>
#include <limits>
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
  /// Threads that load; 0 loads in the caller's thread. A stream of samples is read by one.
  int num_workers = 2;
  /// Batches ready or under way at most, on each rank.
  int64_t prefetch = 4;
  /// Key of the orders and of the samples' random numbers; none: the Trainer's seed.
  std::optional<uint64_t> seed{};
  /// The data set's name in messages.
  std::string name{};
};

namespace detail {

/// What the batches are made from.
enum class LoaderKind { order, sampler, batch_sampler, stream };

void check_loader(const LoaderOptions& options, bool has_dataset, LoaderKind kind);
void check_share(const Share& share);

/// Batches of all ranks that `share` names, of `batches`.
int64_t batches_left(const Share& share, int64_t batches);

}  // namespace detail

/// The batches of one epoch that belong to one rank, in order. Movable; used by one thread at a
/// time. The destructor cancels what is under way: it waits for the samples being loaded at most.
template <typename S>
class Epoch {
 public:
  /// `load` makes the batches 0, 1, ... of this rank, `batches` of them or as many as come before
  /// the first null. `plan` is the list of batches of all ranks; null for a stream.
  Epoch(int64_t batches, Prefetch::Make load, const PrefetchOptions& options,
        std::shared_ptr<const BatchPlan> plan)
      : plan_{std::move(plan)}, prefetch_{batches, std::move(load), options} {}

  /// The list of batches of all ranks; null for a stream.
  [[nodiscard]] const std::shared_ptr<const BatchPlan>& plan() const { return plan_; }

  /// The next batch, or nothing after the last. Where samples are skipped it may have few, or none.
  /// What a sample threw comes out here as an Error that names the sample, after the batches before
  /// it; of the kind it had, or `user` for a foreign exception.
  std::optional<Batch<S>> next() {
    const auto item = std::static_pointer_cast<Batch<S>>(prefetch_.next());
    return item ? std::optional<Batch<S>>{std::move(*item)} : std::nullopt;
  }

 private:
  std::shared_ptr<const BatchPlan> plan_;
  Prefetch prefetch_;
};

/// Batches of a data set, loaded ahead by threads. Which batches there are, their order and their
/// content depend on the data set, the options, the sampler and the epoch alone; neither on ranks
/// nor on threads (a sharded stream apart, whose batches are its rank's). A copy is cheap and
/// shares the data set.
///
/// Each tensor of a sample is handed out in memory that is aligned to 64 bytes (data/tensors.h).
template <typename S>
class Loader {
 public:
  /// In the data set's order, or shuffled. Error of kind `usage` for a null pointer or an option
  /// out of range, here and in the other constructors.
  explicit Loader(std::shared_ptr<const Dataset<S>> dataset, LoaderOptions options = {})
      : Loader{detail::LoaderKind::order, std::move(dataset), nullptr, std::move(options)} {}

  explicit Loader(std::vector<S> samples, LoaderOptions options = {})
      : Loader{make_dataset(std::move(samples)), std::move(options)} {}

  /// In the order of a sampler, which `shuffle` may not ask to change.
  Loader(std::shared_ptr<const Dataset<S>> dataset, std::shared_ptr<const Sampler> sampler,
         LoaderOptions options = {})
      : Loader{detail::LoaderKind::sampler, std::move(dataset), nullptr, std::move(options)} {
    check(sampler != nullptr, "a loader was given a null pointer as sampler");
    sampler_ = std::move(sampler);
  }

  /// In batches that are given whole: batch_size, shuffle and drop_last stay as they are by
  /// default.
  Loader(std::shared_ptr<const Dataset<S>> dataset, std::shared_ptr<const BatchSampler> batches,
         LoaderOptions options = {})
      : Loader{detail::LoaderKind::batch_sampler, std::move(dataset), nullptr, std::move(options)} {
    check(batches != nullptr, "a loader was given a null pointer as batch sampler");
    batch_sampler_ = std::move(batches);
  }

  /// Samples in the order in which they come, as many as there are.
  explicit Loader(std::shared_ptr<const IterableDataset<S>> stream, LoaderOptions options = {})
      : Loader{detail::LoaderKind::stream, nullptr, std::move(stream), std::move(options)} {}

  /// Batches an epoch, of all ranks together; nothing for a stream, whose end alone tells.
  [[nodiscard]] std::optional<int64_t> size() const {
    if (stream_ != nullptr) return std::nullopt;
    if (batch_sampler_ != nullptr) return batch_sampler_->size();
    const int64_t samples = sampler_ != nullptr ? sampler_->size() : dataset_->size();
    return batches_of_samples(samples, options_.batch_size, options_.drop_last);
  }
  /// Whether each batch has the samples of its plan: no stream, and nothing is skipped.
  [[nodiscard]] bool has_known_counts() const {
    return dataset_ != nullptr && !dataset_->may_skip();
  }
  /// Whether each rank has a part of its own, so that the ranks decide on what batches hold.
  [[nodiscard]] bool is_sharded() const { return stream_ != nullptr && stream_->is_sharded(); }
  [[nodiscard]] const LoaderOptions& options() const { return options_; }

  /// The batches of epoch `epoch` >= 0 that `share` names, in that order. Loading starts at once.
  /// The loader need not outlive the result.
  [[nodiscard]] Epoch<S> batches(int64_t epoch = 0, const Share& share = {}) const {
    check(epoch >= 0, "epochs count from 0, found {}", epoch);
    detail::check_share(share);
    const uint64_t key = options_.seed.value_or(share.seed);
    return stream_ != nullptr ? stream_batches(epoch, share, key)
                              : planned_batches(epoch, share, key);
  }

 private:
  Loader(detail::LoaderKind kind, std::shared_ptr<const Dataset<S>> dataset,
         std::shared_ptr<const IterableDataset<S>> stream, LoaderOptions options)
      : dataset_{std::move(dataset)}, stream_{std::move(stream)}, options_{std::move(options)} {
    detail::check_loader(options_, dataset_ != nullptr || stream_ != nullptr, kind);
  }

  [[nodiscard]] std::shared_ptr<const BatchPlan> make_plan(int64_t epoch, uint64_t key,
                                                           bool shuffle) const {
    if (batch_sampler_ != nullptr) {
      return checked(BatchPlan{batch_sampler_->batches(key, epoch)}, batch_sampler_->size());
    }
    std::vector<int64_t> order;
    if (sampler_ != nullptr) {
      order = sampler_->order(key, epoch);
    } else if (options_.shuffle && shuffle) {
      order = RandomSampler{dataset_->size()}.order(key, epoch);
    } else {
      order = SequentialSampler{dataset_->size()}.order(key, epoch);
    }
    return checked(BatchPlan{std::move(order), options_.batch_size, options_.drop_last}, *size());
  }

  [[nodiscard]] std::shared_ptr<const BatchPlan> checked(BatchPlan plan, int64_t batches) const {
    check(plan.size() == batches, "a sampler of {} batches by its size() gave {}", batches,
          plan.size());
    plan.check_indices(dataset_->size());
    return std::make_shared<const BatchPlan>(std::move(plan));
  }

  [[nodiscard]] Epoch<S> planned_batches(int64_t epoch, const Share& share, uint64_t key) const {
    const auto plan = make_plan(epoch, key, share.shuffle);
    auto load = [dataset = dataset_, plan, key, name = options_.name, epoch, share](
                    int64_t position, const std::atomic<bool>& cancelled) -> std::shared_ptr<void> {
      const int64_t k = share.first + share.rank + position * share.world_size;
      std::vector<int64_t> indices;
      std::vector<S> samples;
      for (const int64_t index : plan->batch(k)) {
        if (cancelled) {
          return nullptr;
        }
        const Rng rng{key, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)};
        if (auto sample = load_sample(*dataset, index, rng, name)) {
          indices.push_back(index);
          samples.push_back(std::move(*sample));
        }
      }
      return std::make_shared<Batch<S>>(k, std::move(indices), std::move(samples));
    };
    const int64_t left = detail::batches_left(share, plan->size());
    return {batches_of_rank(left, share.rank, share.world_size),
            std::move(load),
            {.workers = options_.num_workers, .ahead = options_.prefetch},
            plan};
  }

  [[nodiscard]] Epoch<S> stream_batches(int64_t epoch, const Share& share, uint64_t key) const {
    const StreamContext context{
        .epoch = epoch, .seed = key, .rank = share.rank, .world_size = share.world_size};
    const auto batches = std::make_shared<detail::StreamBatches<S>>(
        stream_, context, share,
        typename detail::StreamBatches<S>::Options{.batch_size = options_.batch_size,
                                                   .drop_last = options_.drop_last,
                                                   .name = options_.name});
    auto load = [batches](int64_t /*position*/, const std::atomic<bool>& cancelled) {
      return std::static_pointer_cast<void>(batches->next(cancelled));
    };
    return {std::numeric_limits<int64_t>::max(),
            std::move(load),
            {.workers = std::min(options_.num_workers, 1), .ahead = options_.prefetch},
            nullptr};
  }

  static std::optional<S> load_sample(const Dataset<S>& dataset, int64_t index, Rng rng,
                                      const std::string& name) {
    try {
      std::optional<S> sample = dataset.find(index, rng);
      if (sample) {
        replace_tensors(*sample, in_aligned_memory);
      }
      return sample;
    } catch (...) {
      detail::rethrow_at("sample " + std::to_string(index), name);
    }
  }

  std::shared_ptr<const Dataset<S>> dataset_;
  std::shared_ptr<const IterableDataset<S>> stream_;
  std::shared_ptr<const Sampler> sampler_{};
  std::shared_ptr<const BatchSampler> batch_sampler_{};
  LoaderOptions options_;
};

}  // namespace muster
