#pragma once

#include <muster/base/random.h>
#include <muster/data/share.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace muster {

/// For which epoch, and by which rank, a stream of samples is read.
struct StreamContext {
  int64_t epoch = 0;
  uint64_t seed = 0;
  int rank = 0;
  int world_size = 1;

  /// Random numbers for sample `index`, the same on every rank: keyed by (seed, epoch, index).
  [[nodiscard]] Rng rng(int64_t index) const {
    return Rng{seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)};
  }
};

template <typename S>
struct IndexedSample {
  int64_t index = 0;  ///< within the data set: each once an epoch, on one rank
  S sample{};
};

/// Samples one after another. Used by one thread.
template <typename S>
class SampleStream {
 public:
  virtual ~SampleStream() = default;
  /// Nothing after the last one.
  virtual std::optional<IndexedSample<S>> next() = 0;
};

/// Samples in a sequence whose end alone tells how many they are.
template <typename S>
class IterableDataset {
 public:
  using Sample = S;

  virtual ~IterableDataset() = default;

  /// False: every rank's stream gives all samples in one order, and the loader deals the batches,
  /// so results are those of a single process. True: a rank's stream gives that rank's samples,
  /// which no other has; the streams may end at different places.
  [[nodiscard]] virtual bool is_sharded() const { return false; }
  /// Starts one; called once an epoch on every rank, and by several threads.
  [[nodiscard]] virtual std::unique_ptr<SampleStream<S>> stream(
      const StreamContext& context) const = 0;
};

namespace detail {

template <typename S, typename Next>
class FunctionStream final : public SampleStream<S> {
 public:
  explicit FunctionStream(Next next) : next_{std::move(next)} {}

  std::optional<IndexedSample<S>> next() override {
    if constexpr (std::is_same_v<std::invoke_result_t<Next&>, std::optional<S>>) {
      std::optional<S> sample = next_();
      if (!sample) return std::nullopt;
      return IndexedSample<S>{index_++, std::move(*sample)};
    } else {
      return next_();
    }
  }

 private:
  Next next_;
  int64_t index_ = 0;
};

template <typename S, typename Open>
class FunctionIterable final : public IterableDataset<S> {
 public:
  FunctionIterable(Open open, bool sharded) : open_{std::move(open)}, sharded_{sharded} {}

  [[nodiscard]] bool is_sharded() const override { return sharded_; }
  [[nodiscard]] std::unique_ptr<SampleStream<S>> stream(
      const StreamContext& context) const override {
    auto next = open_(context);
    return std::make_unique<FunctionStream<S, decltype(next)>>(std::move(next));
  }

 private:
  Open open_;
  bool sharded_;
};

template <typename T>
struct SampleOf;
template <typename S>
struct SampleOf<std::optional<S>> {
  using Type = S;
};
template <typename S>
struct SampleOf<std::optional<IndexedSample<S>>> {
  using Type = S;
};

/// S of a function that opens a stream: what the stream's function gives, an optional S or an
/// optional IndexedSample<S>.
template <typename Open>
using StreamedBy = typename SampleOf<
    std::invoke_result_t<std::invoke_result_t<const Open&, const StreamContext&>&>>::Type;

}  // namespace detail

/// `open(context)` starts one order for all ranks: it returns a function that gives the next sample
/// (std::optional<S>: they are numbered from 0) or the next with its index
/// (std::optional<IndexedSample<S>>), and nothing at the end.
template <typename Open, typename S = detail::StreamedBy<Open>>
std::shared_ptr<const IterableDataset<S>> make_iterable(Open open) {
  return std::make_shared<detail::FunctionIterable<S, Open>>(std::move(open), false);
}

/// `open(context)` starts what context.rank of context.world_size has: it returns a function that
/// gives the next std::optional<IndexedSample<S>>.
template <typename Open, typename S = detail::StreamedBy<Open>>
std::shared_ptr<const IterableDataset<S>> make_sharded(Open open) {
  return std::make_shared<detail::FunctionIterable<S, Open>>(std::move(open), true);
}

}  // namespace muster
