#pragma once

#include <muster/metrics/metric.h>

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

}  // namespace muster::test
