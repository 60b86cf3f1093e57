// What an epoch's sync of 50 metrics costs, for bench/sync.py, which prints it for people; the
// result here is JSON on the standard output.
//
//   sync_cost virtual MOST_RANKS   bytes and operations on 1, 2, 4, ... virtual ranks
//   sync_cost real RANKS           real processes on loopback, beside bare operations of Gloo
//
// The real ranks take turns: a sync, then as many bare allgathers of as many bytes, twice, so that
// the second tells how far two alike differ. Before each they meet, so that none waits in the
// operation for what another does outside it.

#include "gloo_operations.h"
#include "src/train/sync_internal.h"
#include "sync_work.h"

#include <muster/base/json_writer.h>
#include <muster/proc/launch.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>
#include <muster/train/environment.h>
#include <muster/train/job.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>

namespace bench {

namespace {

constexpr int rounds = 1'000;
constexpr int warm_up = 100;

template <typename Run>
double microseconds(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

void add_list(muster::JsonWriter& json, std::string_view name, const std::vector<double>& values) {
  json.key(name).begin_list();
  for (const double value : values) {
    json.value(value);
  }
  json.end_list();
}

/// The rank's metrics as they are before the sync, which leaves in them what all ranks have.
class Epoch {
 public:
  explicit Epoch(int64_t rank) {
    work_.add_rank(rank);
    for (const auto& [name, metric] : work_.metrics()) {
      states_.push_back(metric->state());
    }
  }

  void rewind() {
    for (size_t i = 0; i < states_.size(); ++i) {
      work_.metrics()[i].second->reset();
      work_.metrics()[i].second->merge(states_[i]);
    }
  }
  void sync(muster::Group& group) { muster::sync_epoch(group, work_.ledger(), work_.metrics()); }

 private:
  SyncWork work_;
  std::vector<std::string> states_;
};

/// One sync: how many operations it takes, and how many bytes each has for each rank.
int64_t count_operations(Epoch& epoch, muster::Group& group, std::vector<int64_t>& sizes) {
  const GlooOperations counter;
  const int64_t operations = GlooOperations::total();
  const auto before = group.counts();
  epoch.sync(group);
  const auto after = group.counts();
  const int64_t taken = GlooOperations::total() - operations;
  const int64_t headers = after.header_rounds - before.header_rounds;
  const int64_t payloads = after.payload_rounds - before.payload_rounds;
  // Headers have one size; Gloo's payloads have the largest of all ranks.
  const auto bytes = std::vector<int64_t>{after.bytes_sent - before.bytes_sent};
  const int64_t largest = group.all_reduce(bytes, muster::ReduceOp::max).front();
  group.barrier();
  const auto barrier = group.counts();
  group.barrier();
  const int64_t header = group.counts().bytes_sent - barrier.bytes_sent;
  sizes.assign(static_cast<size_t>(headers), header);
  sizes.insert(sizes.end(), static_cast<size_t>(payloads),
               (largest - headers * header) / std::max<int64_t>(payloads, 1));
  return taken;
}

void time_ranks() {
  muster::Group group = muster::job_group(60);
  Epoch epoch{group.rank()};
  std::vector<int64_t> sizes;
  const int64_t operations = count_operations(epoch, group, sizes);
  const auto meeting = make_bare_gather(group, "bench/meeting", {1});
  const auto bare = make_bare_gather(group, "bench/bare", sizes);
  const auto again = make_bare_gather(group, "bench/bare again", sizes);
  std::vector<double> sync_us;
  std::vector<double> bare_us;
  std::vector<double> again_us;
  for (int round = -warm_up; round < rounds; ++round) {
    epoch.rewind();
    meeting->run();
    const double of_sync = microseconds([&] { epoch.sync(group); });
    meeting->run();
    const double of_bare = microseconds([&] { bare->run(); });
    meeting->run();
    const double of_again = microseconds([&] { again->run(); });
    if (round >= 0) {
      sync_us.push_back(of_sync);
      bare_us.push_back(of_bare);
      again_us.push_back(of_again);
    }
  }
  group.finish();
  if (group.rank() != 0) {
    return;
  }
  muster::JsonWriter json;
  json.begin_object().key("operations").value(operations);
  json.key("sizes").begin_list();
  for (const int64_t size : sizes) {
    json.value(size);
  }
  json.end_list();
  add_list(json, "sync", sync_us);
  add_list(json, "bare", bare_us);
  add_list(json, "bare again", again_us);
  std::printf("%s\n", json.end_object().text().c_str());
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || (arguments[0] != "virtual" && arguments[0] != "real")) {
    std::fprintf(stderr, "usage: sync_cost virtual MOST_RANKS | real RANKS\n");
    return 2;
  }
  if (arguments[0] == "virtual") {
    return run_virtual(std::stoll(arguments[1]));
  }
  if (!muster::rank_env()) {
    return muster::launch({"sync_cost", "real", arguments[1]},
                          {.ranks = std::stoi(arguments[1]), .self_exe = true});
  }
  muster::attach_to_launcher();
  muster::set_compute_threads(1);
  time_ranks();
  return 0;
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run({argv + 1, argv + argc});
  } catch (...) {
    muster::fail_rank(muster::describe_failure(std::current_exception()));
  }
}
