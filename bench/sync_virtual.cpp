// An epoch's sync on up to 1024 virtual ranks in one process. Each rank runs the library's own
// sync_epoch on a transport that keeps what the rank sends; then ranks run it once more on one that
// hands them everything.

#include "src/train/sync_internal.h"
#include "sync_work.h"

#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/comm/group.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <ctime>

namespace bench {

namespace {

/// What one rank gives to the two operations of a sync.
struct Sent {
  std::string header{};
  std::string payload{};
};

struct Stop {};

/// Ends the sync, by an exception, once the rank has sent its payload.
class Recorder final : public muster::Transport {
 public:
  Recorder(int rank, int size, Sent& sent) : rank_{rank}, size_{size}, sent_{sent} {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  std::vector<std::string> exchange(std::string_view mine) override {
    sent_.header = mine;
    return std::vector<std::string>(static_cast<size_t>(size_), sent_.header);
  }
  std::vector<std::string> exchange(std::string_view mine,
                                    std::span<const int64_t> /*sizes*/) override {
    sent_.payload = mine;
    throw Stop{};
  }
  void abort(const std::string& /*reason*/) override {}

 private:
  int rank_;
  int size_;
  Sent& sent_;
};

/// Gives what all ranks have sent.
class Player final : public muster::Transport {
 public:
  Player(int rank, std::span<const Sent> sent) : rank_{rank}, sent_{sent} {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(sent_.size()); }
  std::vector<std::string> exchange(std::string_view /*mine*/) override {
    return all([](const Sent& sent) { return sent.header; });
  }
  std::vector<std::string> exchange(std::string_view /*mine*/,
                                    std::span<const int64_t> /*sizes*/) override {
    return all([](const Sent& sent) { return sent.payload; });
  }
  void abort(const std::string& /*reason*/) override {}

 private:
  template <typename Part>
  [[nodiscard]] std::vector<std::string> all(const Part& part) const {
    std::vector<std::string> out;
    out.reserve(sent_.size());
    std::transform(sent_.begin(), sent_.end(), std::back_inserter(out), part);
    return out;
  }

  int rank_;
  std::span<const Sent> sent_;
};

Sent record(int rank, int size, const SyncWork& work) {
  Sent sent;
  muster::Group group{std::make_unique<Recorder>(rank, size, sent)};
  try {
    muster::sync_epoch(group, work.ledger(), work.metrics());
  } catch (const Stop&) {
    return sent;
  }
  muster::fail(muster::ErrorKind::usage, "a sync of {} ranks has sent nothing", size);
}

bool same_bits(const muster::EpochResult& one, const muster::EpochResult& two) {
  const auto& left = one.report.metrics;
  const auto& right = two.report.metrics;
  return one.report.samples == two.report.samples && left.size() == metrics_of_work &&
         std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && a.second && b.second &&
                             std::bit_cast<uint64_t>(*a.second) ==
                                 std::bit_cast<uint64_t>(*b.second);
                    });
}

/// Milliseconds that this thread has computed.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct Figures {
  muster::Group::Counts counts{};
  double cpu_ms = 0;
  bool exact = true;
};

Figures play(int rank, std::span<const Sent> sent, const muster::EpochResult& expected) {
  SyncWork work;
  work.add_rank(rank);
  muster::Group group{std::make_unique<Player>(rank, sent)};
  const double begin = cpu_ms();
  const auto result = muster::sync_epoch(group, work.ledger(), work.metrics());
  const double end = cpu_ms();
  return {.counts = group.counts(), .cpu_ms = end - begin, .exact = same_bits(result, expected)};
}

}  // namespace

int run_virtual(int64_t most_ranks) {
  muster::JsonWriter json;
  json.begin_list();
  std::vector<Sent> sent;
  SyncWork alone;  // sees the samples of all ranks
  bool exact = true;
  for (int64_t ranks = 1; ranks <= most_ranks; ranks *= 2) {
    while (static_cast<int64_t>(sent.size()) < ranks) {
      const auto rank = static_cast<int>(sent.size());
      alone.add_rank(rank);
      SyncWork work;
      work.add_rank(rank);
      sent.push_back(record(rank, static_cast<int>(most_ranks), work));
    }
    muster::Group self = muster::Group::self();
    const auto expected = muster::sync_epoch(self, alone.ledger(), alone.metrics());
    const Figures first = play(0, sent, expected);
    const Figures last = play(static_cast<int>(ranks) - 1, sent, expected);
    exact = exact && first.exact && last.exact;
    const auto largest = std::max_element(
        sent.begin(), sent.end(),
        [](const Sent& one, const Sent& two) { return one.payload.size() < two.payload.size(); });
    const auto block = static_cast<int64_t>(largest->header.size() + largest->payload.size());
    json.begin_object();
    json.key("ranks").value(ranks);
    json.key("operations").value(first.counts.header_rounds + first.counts.payload_rounds);
    json.key("sent").value(first.counts.bytes_sent);
    json.key("received").value((ranks - 1) * block);
    json.key("ms").value(first.cpu_ms);
    json.key("exact").value(first.exact && last.exact);
    json.end_object();
  }
  std::printf("%s\n", json.end_list().text().c_str());
  return exact ? 0 : 1;
}

}  // namespace bench
