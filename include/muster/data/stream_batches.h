#pragma once

#include <muster/base/check.h>
#include <muster/data/batch.h>
#include <muster/data/iterable.h>
#include <muster/data/tensors.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::detail {

/// Throws the exception that is being handled as an Error that names the place; to be called in a
/// catch block. `place`: "sample 7", "the sample after 7".
[[noreturn]] void rethrow_at(const std::string& place, const std::string& dataset);

/// Reads a rank's batches off a stream, one after another. Used by one thread at a time.
template <typename S>
class StreamBatches {
 public:
  struct Options {
    int64_t batch_size = 1;
    bool drop_last = false;
    std::string name{};  ///< of the data set, for messages
  };

  StreamBatches(std::shared_ptr<const IterableDataset<S>> dataset, const StreamContext& context,
                const Share& share, Options options)
      : dataset_{std::move(dataset)},
        context_{context},
        share_{share},
        options_{std::move(options)},
        sharded_{dataset_->is_sharded()},
        k_{sharded_ ? share.rank : 0} {
    check(!sharded_ || share_.first % share_.world_size == 0,
          "{} batches were done, which is no number of whole rounds of {} shards", share_.first,
          share_.world_size);
  }

  /// The next batch of this rank; null at the end, or once `cancelled`.
  std::shared_ptr<Batch<S>> next(const std::atomic<bool>& cancelled) {
    while (k_ < share_.limit && !cancelled) {
      const bool wanted =
          k_ >= share_.first && (k_ - share_.first) % share_.world_size == share_.rank;
      auto batch = read(wanted, cancelled);
      k_ += sharded_ ? share_.world_size : 1;
      if (batch == nullptr || wanted) {
        return batch;
      }
    }
    return nullptr;
  }

 private:
  /// The stream's next batch; null when there is none.
  std::shared_ptr<Batch<S>> read(bool wanted, const std::atomic<bool>& cancelled) {
    std::vector<int64_t> indices;
    std::vector<S> samples;
    while (static_cast<int64_t>(indices.size()) < options_.batch_size) {
      if (cancelled) return nullptr;
      auto next = read_sample();
      if (!next) break;
      last_ = next->index;
      indices.push_back(next->index);
      if (wanted) {
        replace_tensors(next->sample, in_aligned_memory);
      }
      samples.push_back(std::move(next->sample));
    }
    const bool full = static_cast<int64_t>(indices.size()) == options_.batch_size;
    if (indices.empty() || (options_.drop_last && !full)) {
      return nullptr;
    }
    return std::make_shared<Batch<S>>(k_, std::move(indices), std::move(samples));
  }

  std::optional<IndexedSample<S>> read_sample() {
    try {
      if (stream_ == nullptr) {
        stream_ = dataset_->stream(context_);
        check(stream_ != nullptr, "an iterable data set gave no stream but a null pointer");
      }
      return stream_->next();
    } catch (...) {
      rethrow_at(last_ < 0 ? "the first sample" : "the sample after " + std::to_string(last_),
                 options_.name);
    }
  }

  std::shared_ptr<const IterableDataset<S>> dataset_;
  StreamContext context_;
  Share share_;
  Options options_;
  bool sharded_;
  /// Number of the batch that is read next.
  int64_t k_;
  int64_t last_ = -1;
  std::unique_ptr<SampleStream<S>> stream_{};
};

}  // namespace muster::detail
