#pragma once

#include <muster/comm/group.h>

#include <cstdint>
#include <random>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

/// Random programs of collectives and what they must give, for every kind of group.
namespace muster::test {

enum class Kind { all_gather, broadcast, sum_doubles, max_ints, barrier };

inline constexpr int kinds = 5;
inline constexpr int call_sites = 4;

inline std::source_location call_site(int index) {
  switch (index) {
    case 0:
      return std::source_location::current();
    case 1:
      return std::source_location::current();
    case 2:
      return std::source_location::current();
    default:
      return std::source_location::current();
  }
}

/// A call of one rank.
struct Call {
  Kind kind = Kind::barrier;
  int site = 0;
  int root = 0;
  int count = 0;
  uint64_t seed = 0;
};

/// One step of one rank: go to a place, then call. `section` >= 0 begins one first.
struct Stop {
  std::string stage{};
  int64_t epoch = 0;
  bool begins = false;
  Place place{};
  std::vector<Call> calls{};
};

/// `ranks[r]` is what rank r does. A stop of the same place is the same stop on all ranks that have
/// it.
struct Program {
  std::vector<std::vector<Stop>> ranks{};
};

inline std::string payload_of(const Call& call, int rank) {
  std::mt19937_64 random{call.seed * 31 + static_cast<uint64_t>(rank)};
  std::string bytes(random() % 4 == 0 ? 0 : random() % 200, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

template <class T>
std::vector<T> numbers_of(const Call& call, int rank) {
  std::mt19937_64 random{call.seed * 17 + static_cast<uint64_t>(rank)};
  std::vector<T> numbers(static_cast<size_t>(call.count));
  for (auto& number : numbers) {
    // Doubles of very different size, so that another order of summing would show.
    const auto drawn = static_cast<T>(random() % 2000) - T{1000};
    number = drawn / (random() % 2 == 0 ? T{1} : T{7}) * (random() % 3 == 0 ? T{100000000} : T{1});
  }
  return numbers;
}

/// Makes the call and says, as text, what came back.
inline std::string perform(Group& group, const Call& call) {
  const auto where = call_site(call.site);
  std::string seen;
  switch (call.kind) {
    case Kind::all_gather:
      for (const auto& [rank, bytes] : group.all_gather(payload_of(call, group.rank()), where)) {
        seen += std::to_string(rank) + ":" + bytes + "\n";
      }
      break;
    case Kind::broadcast:
      seen = group.broadcast(payload_of(call, group.rank()), call.root, where);
      break;
    case Kind::sum_doubles: {
      const auto mine = numbers_of<double>(call, group.rank());
      for (const double x : group.all_reduce(mine, ReduceOp::sum, where)) {
        seen.append(reinterpret_cast<const char*>(&x), sizeof x);
      }
      break;
    }
    case Kind::max_ints: {
      const auto mine = numbers_of<int64_t>(call, group.rank());
      for (const int64_t x : group.all_reduce(mine, ReduceOp::max, where)) {
        seen += std::to_string(x) + " ";
      }
      break;
    }
    case Kind::barrier:
      group.barrier(where);
      break;
  }
  return seen;
}

/// What `perform` must give when the ranks of `present` call together.
inline std::string simulate(const Call& call, const std::vector<int>& present) {
  std::string expected;
  switch (call.kind) {
    case Kind::all_gather:
      for (const int rank : present) {
        expected += std::to_string(rank) + ":" + payload_of(call, rank) + "\n";
      }
      break;
    case Kind::broadcast:
      expected = payload_of(call, call.root);
      break;
    case Kind::sum_doubles:
      for (size_t i = 0; i < static_cast<size_t>(call.count); ++i) {
        double sum = numbers_of<double>(call, present.front())[i];
        for (size_t p = 1; p < present.size(); ++p) sum += numbers_of<double>(call, present[p])[i];
        expected.append(reinterpret_cast<const char*>(&sum), sizeof sum);
      }
      break;
    case Kind::max_ints:
      for (size_t i = 0; i < static_cast<size_t>(call.count); ++i) {
        int64_t largest = INT64_MIN;
        for (const int rank : present) {
          largest = std::max(largest, numbers_of<int64_t>(call, rank)[i]);
        }
        expected += std::to_string(largest) + " ";
      }
      break;
    case Kind::barrier:
      break;
  }
  return expected;
}

/// The ranks that are at a place of the program, by the section's number of `Stop`s that begin one.
inline std::vector<int> present_at(const Program& program, const Place& place) {
  std::vector<int> present;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (const auto& stop : program.ranks[rank]) {
      if (stop.place == place) present.push_back(static_cast<int>(rank));
    }
  }
  return present;
}

/// Runs this rank's part; returns the number of results that are not as simulated. An exception
/// passes through.
inline int run_rank(Group& group, const Program& program, bool finish = true) {
  int wrong = 0;
  for (const auto& stop : program.ranks[static_cast<size_t>(group.rank())]) {
    if (stop.begins) group.begin_section(stop.stage, stop.epoch);
    group.move_to(stop.place.loader, stop.place.round);
    if (stop.calls.empty()) continue;
    const auto present = present_at(program, stop.place);
    for (const auto& call : stop.calls) {
      if (perform(group, call) != simulate(call, present)) ++wrong;
    }
  }
  if (finish) group.finish(call_site(0));
  return wrong;
}

/// Draws programs that are valid by construction, and breaks them.
class ProgramMaker {
 public:
  explicit ProgramMaker(uint64_t seed) : random_{seed} {}

  Program valid(int ranks) {
    Program program{.ranks = std::vector<std::vector<Stop>>(static_cast<size_t>(ranks))};
    everyone_.clear();
    for (int rank = 0; rank < ranks; ++rank) everyone_.push_back(rank);
    add(program, {}, everyone_, below(2));
    const int64_t sections = 1 + below(2);
    for (section_ = 1; section_ <= sections; ++section_) add_section(program);
    return program;
  }

  /// A valid program with one thing wrong, at a place where at least two ranks are.
  Program invalid(int ranks) {
    while (true) {
      Program program = valid(ranks);
      if (break_one(program)) return program;
    }
  }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

  Call draw(const std::vector<int>& present) {
    return {.kind = static_cast<Kind>(below(kinds)),
            .site = static_cast<int>(below(call_sites)),
            .root = present[static_cast<size_t>(below(static_cast<int64_t>(present.size())))],
            .count = static_cast<int>(below(5)),
            .seed = random_()};
  }

  void add(Program& program, Stop stop, const std::vector<int>& present, int64_t calls) {
    for (int64_t i = 0; i < calls; ++i) stop.calls.push_back(draw(present));
    for (const int rank : present) program.ranks[static_cast<size_t>(rank)].push_back(stop);
  }

  void add_section(Program& program) {
    Stop stop{.stage = below(2) == 0 ? "validate" : "predict", .epoch = below(3), .begins = true};
    stop.place = {.section = section_};
    add(program, stop, everyone_, below(2));
    stop.begins = false;
    const int64_t loaders = below(4);
    for (stop.place.loader = 0; stop.place.loader < loaders; ++stop.place.loader) {
      stop.place.round = -1;
      if (below(3) == 0) add(program, stop, everyone_, below(2));
      add_rounds(program, stop);
    }
    stop.place.loader = Place::after_loaders;
    stop.place.round = -1;
    add(program, stop, everyone_, below(3));
  }

  void add_rounds(Program& program, Stop stop) {
    const auto ranks = static_cast<int64_t>(everyone_.size());
    const int64_t batches = below(2 * ranks + 2);
    const bool dealt = below(3) > 0;
    const int64_t first = below(4) == 0 ? below(5) : 0;
    for (int64_t begin = 0; begin < batches; begin += ranks) {
      stop.place.round = first + begin / ranks * (dealt ? 1 : 1 + below(3));
      std::vector<int> present;
      for (int rank = 0; rank < ranks; ++rank) {
        if (dealt ? begin + rank < batches : below(2) == 0) present.push_back(rank);
      }
      if (dealt ? true : present_at(program, stop.place).empty() && goes_on(program, stop.place)) {
        if (!present.empty()) add(program, stop, present, below(3));
      }
    }
  }

  /// Places must increase on every rank.
  static bool goes_on(const Program& program, const Place& place) {
    for (const auto& stops : program.ranks) {
      if (!stops.empty() && !(stops.back().place < place)) return false;
    }
    return true;
  }

  bool break_one(Program& program) {
    const auto rank = static_cast<size_t>(below(static_cast<int64_t>(program.ranks.size())));
    auto& stops = program.ranks[rank];
    auto& stop = stops[static_cast<size_t>(below(static_cast<int64_t>(stops.size())))];
    const auto present = present_at(program, stop.place);
    if (present.size() < 2) return false;
    switch (below(4)) {
      case 0:
        return break_section(stops, program);
      case 1: {  // a call that only this rank makes, or makes earlier than the others
        Call extra = draw(present);
        extra.site = call_sites - 1;
        for (const auto& call : stop.calls) {
          if (call.site == extra.site) return false;
        }
        const auto at = below(static_cast<int64_t>(stop.calls.size()) + 1);
        stop.calls.insert(stop.calls.begin() + at, extra);
        return true;
      }
      case 2: {  // a call that only this rank leaves out
        if (stop.calls.empty()) return false;
        stop.calls.pop_back();
        return true;
      }
      default:
        return !stop.calls.empty() && change(stop.calls.back(), present);
    }
  }

  bool break_section(std::vector<Stop>& stops, const Program& program) {
    bool told = false;  // a later call of all ranks in that section shows the name
    for (auto& stop : stops) {
      if (!stop.begins) continue;
      for (const auto& other : stops) {
        told = told || (other.place.section == stop.place.section && !other.calls.empty() &&
                        present_at(program, other.place).size() > 1);
      }
      if (!told) continue;
      stop.epoch += 1;
      return true;
    }
    return false;
  }

  bool change(Call& call, const std::vector<int>& present) {
    switch (below(3)) {
      case 0:
        call.site = (call.site + 1) % call_sites;
        return true;
      case 1:
        call.kind = static_cast<Kind>((static_cast<int>(call.kind) + 1 + below(kinds - 1)) % kinds);
        return true;
      default:
        if (call.kind == Kind::broadcast) {
          for (const int rank : present) {
            if (rank != call.root) {
              call.root = rank;
              return true;
            }
          }
        }
        if (call.kind == Kind::max_ints || call.kind == Kind::sum_doubles) {
          call.count += 1;
          return true;
        }
        return false;
    }
  }

  std::mt19937_64 random_;
  std::vector<int> everyone_{};
  int64_t section_ = 0;
};

}  // namespace muster::test
