#pragma once

#include <muster/comm/group.h>
#include <muster/metrics/ledger.h>
#include <muster/metrics/metric.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

constexpr int64_t metrics_of_work = 50;
constexpr int64_t samples_of_rank = 10'000;

/// What an epoch of a validation holds on one rank before its sync: 25 names of `step.log`, once a
/// batch of 8, and 25 registered metrics of five kinds, updated for each sample.
class SyncWork {
 public:
  SyncWork();

  /// Adds the samples of a rank, which depend on its number alone.
  void add_rank(int64_t rank);

  [[nodiscard]] const muster::Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const std::vector<std::pair<std::string, muster::Metric*>>& metrics() const {
    return named_;
  }

 private:
  muster::Ledger ledger_;
  std::vector<std::unique_ptr<muster::Metric>> metrics_;
  std::vector<std::pair<std::string, muster::Metric*>> named_;
};

/// `sync_cost virtual MOST_RANKS`: one JSON list on the standard output.
int run_virtual(int64_t most_ranks);

/// Allgathers of Gloo on a process group of their own, with nothing around them.
class BareGather {
 public:
  virtual ~BareGather() = default;
  /// One operation for each of the sizes, in bytes.
  virtual void run() = 0;
};
std::unique_ptr<BareGather> make_bare_gather(const muster::Group& group, const char* name,
                                             const std::vector<int64_t>& sizes);

}  // namespace bench
