#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A place in the program that orders collectives: all ranks pass the same places in the same
/// order, but a rank that has no batch in a round passes it by. Smaller places are served first.
struct Place {
  /// Every entry into a loop over an epoch counts one up, alike on all ranks.
  int64_t section = 0;
  /// Which loader of the section; `before_loaders` and `after_loaders` for the hooks around them.
  int64_t loader = before_loaders;
  /// Global batch number div W; -1 where there is no batch.
  int64_t round = -1;

  static constexpr int64_t before_loaders = -1;
  static constexpr int64_t after_loaders = INT64_MAX - 1;

  friend auto operator<=>(const Place&, const Place&) = default;
};

enum class ReduceOp { sum, min, max };

/// What one rank contributed to a collective.
struct Contribution {
  int rank = 0;
  std::string bytes{};
};

/// How bytes travel between ranks; the protocol of Group is built on it. Implemented by `self`,
/// `threads` and `c10d`; called by one thread only.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Every rank gives `mine` of equal size; the result holds all ranks' bytes in rank order. Error
  /// of kind `peer_lost` when a rank is gone.
  virtual std::vector<std::string> exchange(std::string_view mine) = 0;
  /// Like `exchange` with sizes that may differ and are known to all: `sizes[r]` bytes from rank r.
  virtual std::vector<std::string> exchange(std::string_view mine,
                                            std::span<const int64_t> sizes) = 0;
  /// Makes the other ranks' running and later calls fail with `peer_lost`. Never blocks. Any
  /// thread. Where ranks are processes they notice it when this one ends, which must follow.
  virtual void abort(const std::string& reason) = 0;
};

struct GroupOptions {
  /// Seconds after which a rank that waits for the others says so, once, then after each doubling.
  double report_after = 10;
  /// Takes that line, on a thread of the group's own; empty: standard error.
  std::function<void(const std::string&)> report{};
};

/// The ranks of a job and what they do together. A copyable handle; copies are the same group.
/// Every collective starts with a fixed-size header (place, ordinal, call site, operation, payload
/// size) that all ranks exchange, so that ranks which disagree get an Error of kind `mismatch` on
/// every rank, never a hang: it names each rank's place and source line.
///
/// A collective at a place is served by the ranks that are at it; a rank at a later place attends
/// without a payload if it had no batch there (`had_batch`), otherwise it is a mismatch. Results
/// hold the present ranks only. One owner thread, the one that made the group, calls collectives; a
/// call from another or a nested one is an Error of kind `usage`. After a `mismatch` or `peer_lost`
/// the group is broken: each later call throws the same error at once. Getters never communicate;
/// the destructor never waits.
class Group {
 public:
  /// A group of one.
  static Group self();
  explicit Group(std::unique_ptr<Transport> transport, GroupOptions options = {});

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;

  /// Starts the next section (one epoch of one stage), before its loaders. Stage (at most 16 bytes)
  /// and epoch must agree on all ranks.
  void begin_section(std::string_view stage, int64_t epoch);
  /// From here on collectives are at this place of the section. A round >= 0 states that this rank
  /// has a batch in it. Error of kind `usage` for a step back.
  void move_to(int64_t loader, int64_t round);
  /// Where the next collective will be.
  [[nodiscard]] Place place() const;

  /// What every present rank gave, by rank. Sizes may differ.
  std::vector<Contribution> all_gather(
      std::string_view mine, std::source_location where = std::source_location::current());
  /// What rank `root` gave; Error of kind `mismatch` on all ranks when it is not present.
  std::string broadcast(std::string_view mine, int root,
                        std::source_location where = std::source_location::current());
  /// Element-wise over the present ranks, folded in rank order; counts must agree. A NaN stays NaN
  /// in `min` and `max`; a sum beyond int64 is an Error of kind `user` on each present rank.
  std::vector<double> all_reduce(std::span<const double> mine, ReduceOp op,
                                 std::source_location where = std::source_location::current());
  std::vector<int64_t> all_reduce(std::span<const int64_t> mine, ReduceOp op,
                                  std::source_location where = std::source_location::current());
  void barrier(std::source_location where = std::source_location::current());

  /// States that this rank calls no collective any more and attends those of the others until all
  /// are done. The last call on a group; a mismatch is reported as by any collective.
  void finish(std::source_location where = std::source_location::current());

  /// Tells the other ranks that this one fails; never blocks. Any thread.
  void abort(const std::string& reason) const;

  /// Collectives and header rounds so far, for tests and benches.
  struct Counts {
    int64_t header_rounds = 0;
    int64_t payload_rounds = 0;
    int64_t bytes_sent = 0;
  };
  [[nodiscard]] Counts counts() const;

  /// What the group stands on, for those who need more of it than bytes.
  [[nodiscard]] Transport& transport() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Runs `body` once a rank, each on a thread of its own, on a group that lives in this process (for
/// tests). When one throws, or returns while others still call, those get `peer_lost`; the
/// exception of the lowest rank whose error is not `peer_lost` is rethrown.
void run_threads(int ranks, const std::function<void(Group&)>& body,
                 const GroupOptions& options = {});

}  // namespace muster
