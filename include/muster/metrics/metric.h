#pragma once

#include <muster/base/record.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// What a metric comes to. Names are without the metric's own: a value `x` of the metric `val`
/// becomes `val/x`, and a value or table named "" becomes `val`.
struct MetricResult {
  /// No value: no sample contributed (absent is not zero).
  std::vector<std::pair<std::string, std::optional<double>>> values{};
  std::vector<Table> tables{};  ///< rows rise by index; `stage` is left empty
};

/// A metric over an epoch: a typed `update` of its own, and these four. It holds what this rank has
/// seen, and never communicates: once an epoch each rank gives its state, and merges the states of
/// all ranks, its own included, in rank order into the metric it has reset. So what `compute` gives
/// must depend on what was added, not on the order of adding or on how it was split among ranks.
/// `docs/metrics.md` shows how to write one.
///
/// Called by one thread at a time.
class Metric {
 public:
  virtual ~Metric() = default;

  /// Everything added since the reset, as bytes; empty when that is nothing. Waits for work in the
  /// background and throws its errors.
  virtual std::string state() = 0;
  /// Adds what a non-empty `state` of a metric with the same options holds.
  virtual void merge(std::string_view state) = 0;
  /// Values and tables of everything that was added and merged.
  virtual MetricResult compute() = 0;
  /// Forgets everything, unfinished work included.
  virtual void reset() = 0;
};

}  // namespace muster
