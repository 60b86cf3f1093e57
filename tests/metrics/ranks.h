#pragma once

#include <muster/base/random.h>
#include <muster/metrics/metric.h>

#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace muster::test {

/// What the trainer does at an epoch's end: every rank gives its state, and each merges all of them
/// in rank order. Returns the result of the last rank; all are the same, which the caller can check
/// by `state` of each.
template <typename Ranks>
MetricResult sync(Ranks& ranks) {
  std::vector<std::string> states;
  states.reserve(ranks.size());
  for (auto& rank : ranks) {
    states.push_back(rank.state());
  }
  for (auto& rank : ranks) {
    rank.reset();
    for (const auto& state : states) {
      if (!state.empty()) {
        rank.merge(state);
      }
    }
  }
  return ranks.back().compute();
}

/// The result as text, every double by its bits.
std::string fingerprint(const MetricResult& result);

/// All results, of all ranks, that the updates 0 to `count` - 1 give when they are dealt at random
/// to 1 to 7 ranks in random order. One, for a metric that keeps its promise. `make()` makes a
/// metric, `update(metric, i)` is update i.
template <typename Make, typename Update>
std::set<std::string> results_of_splits(int64_t count, const Make& make, const Update& update) {
  std::set<std::string> results;
  Rng rng{17};
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int world = 1; world <= 7; ++world) {
    for (int trial = 0; trial < 5; ++trial) {
      std::vector<decltype(make())> ranks;
      ranks.reserve(static_cast<size_t>(world));
      for (int rank = 0; rank < world; ++rank) {
        ranks.push_back(make());
      }
      for (const int64_t i : order) {
        update(ranks[static_cast<size_t>(rng.below(world))], i);
      }
      sync(ranks);
      for (auto& rank : ranks) {
        results.insert(fingerprint(rank.compute()));
      }
      rng.shuffle(order);
    }
  }
  return results;
}

}  // namespace muster::test
