#include <muster/comm/group.h>

#include "tests/comm/deadline.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Deadline;

std::string gathered(const std::vector<Contribution>& all) {
  std::string text;
  for (const auto& [rank, bytes] : all) text += std::to_string(rank) + bytes + " ";
  return text;
}

template <class Function>
std::optional<Error> error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// The errors that the ranks saw, by rank.
std::vector<std::optional<Error>> errors_of(int ranks, const std::function<void(Group&)>& body) {
  std::vector<std::optional<Error>> errors(static_cast<size_t>(ranks));
  error_of([&] {
    run_threads(ranks, [&](Group& group) {
      auto& error = errors[static_cast<size_t>(group.rank())];
      error = error_of([&] { body(group); });
      if (error) throw Error{*error};
    });
  });
  return errors;
}

void expect_all(ErrorKind kind, const std::vector<std::optional<Error>>& errors) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    ASSERT_TRUE(errors[rank]) << "rank " << rank << " saw nothing";
    EXPECT_EQ(errors[rank]->kind(), kind) << errors[rank]->what();
    EXPECT_STREQ(errors[rank]->what(), errors[0]->what());
  }
}

void expect_has(const std::optional<Error>& error, const std::string& text) {
  ASSERT_TRUE(error);
  EXPECT_NE(std::string{error->what()}.find(text), std::string::npos) << error->what();
}

TEST(Group, OfOneGivesWhatTheRankGave) {
  Group group = Group::self();
  group.begin_section("predict", 0);
  group.move_to(0, 0);
  EXPECT_EQ(gathered(group.all_gather("a")), "0a ");
  EXPECT_EQ(group.broadcast("b", 0), "b");
  EXPECT_EQ(group.all_reduce(std::vector<double>{1.5, -2}, ReduceOp::sum),
            (std::vector<double>{1.5, -2}));
  group.barrier();
  group.finish();
  EXPECT_EQ(group.counts().header_rounds, 0);
}

TEST(Group, GathersStringsOfDifferentLengthsAndEmptyOnes) {
  run_threads(3, [](Group& group) {
    const std::string mine(static_cast<size_t>(group.rank()) * 2, 'x');
    EXPECT_EQ(gathered(group.all_gather(mine)), "0 1xx 2xxxx ");
    EXPECT_EQ(gathered(group.all_gather("")), "0 1 2 ");
    group.finish();
  });
}

TEST(Group, GathersTenMegabytes) {
  run_threads(2, [](Group& group) {
    std::string mine;
    mine.resize(10'000'000);
    for (size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<char>(i * 7 + 13);
    if (group.rank() == 1) mine.resize(3);
    const auto all = group.all_gather(mine);
    EXPECT_EQ(all[static_cast<size_t>(group.rank())].bytes, mine);
    EXPECT_EQ(all[0].bytes.size(), 10'000'000U);
    EXPECT_EQ(all[1].bytes, (std::string{"\x0d\x14\x1b"}));
  });
}

TEST(Group, BroadcastGivesTheRootsBytes) {
  run_threads(3, [](Group& group) {
    EXPECT_EQ(group.broadcast(std::string(3, static_cast<char>('a' + group.rank())), 2), "ccc");
  });
}

TEST(Group, ReducesInRankOrder) {
  run_threads(3, [](Group& group) {
    const std::vector<double> numbers{1e16, -1e16, 1.0};
    const std::vector<double> mine{numbers[static_cast<size_t>(group.rank())]};
    EXPECT_EQ(group.all_reduce(mine, ReduceOp::sum)[0], 1.0);
    EXPECT_EQ(group.all_reduce(mine, ReduceOp::min)[0], -1e16);
    EXPECT_EQ(group.all_reduce(mine, ReduceOp::max)[0], 1e16);
    const std::vector<int64_t> rank{group.rank(), -group.rank()};
    EXPECT_EQ(group.all_reduce(rank, ReduceOp::sum), (std::vector<int64_t>{3, -3}));
    EXPECT_EQ(group.all_reduce(rank, ReduceOp::max), (std::vector<int64_t>{2, 0}));
    EXPECT_TRUE(group.all_reduce(std::vector<int64_t>{}, ReduceOp::sum).empty());
  });
}

TEST(Group, KeepsANanInMinAndMaxOnWhicheverRankItIs) {
  for (int holder = 0; holder < 3; ++holder) {
    run_threads(3, [&](Group& group) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const std::vector<double> mine{group.rank() == holder ? nan : group.rank()};
      EXPECT_TRUE(std::isnan(group.all_reduce(mine, ReduceOp::min)[0]));
      EXPECT_TRUE(std::isnan(group.all_reduce(mine, ReduceOp::max)[0]));
    });
  }
}

TEST(Group, RefusesASumBeyondInt64OnEveryRankAndGoesOn) {
  run_threads(2, [](Group& group) {
    const std::vector<int64_t> mine{INT64_MAX - 1 + group.rank()};
    const auto error = error_of([&] { group.all_reduce(mine, ReduceOp::sum); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::user);
    EXPECT_EQ(group.all_reduce(mine, ReduceOp::max)[0], INT64_MAX);
  });
}

/// `batches` whole batches dealt to the ranks of `group`; `body` runs in each round that this rank
/// has.
void deal(Group& group, int64_t batches, const std::function<void(int64_t)>& body) {
  for (int64_t k = group.rank(); k < batches; k += group.size()) {
    group.move_to(0, k / group.size());
    body(k);
  }
}

TEST(Group, ARankWithoutABatchAttendsTheOthersRounds) {
  run_threads(2, [](Group& group) {
    group.begin_section("predict", 0);
    std::string seen;
    deal(group, 3, [&](int64_t k) { seen += gathered(group.all_gather("b" + std::to_string(k))); });
    group.move_to(Place::after_loaders, -1);
    seen += gathered(group.all_gather("e"));
    group.finish();
    EXPECT_EQ(seen, group.rank() == 0 ? "0b0 1b1 0b2 0e 1e " : "0b0 1b1 0e 1e ");
  });
}

TEST(Group, RanksThatFinishEarlyAttendWhatOthersStillDo) {
  run_threads(5, [](Group& group) {
    group.begin_section("predict", 0);
    int64_t present = 0;
    deal(group, 11,
         [&](int64_t) { present += static_cast<int64_t>(group.all_gather("x").size()); });
    group.finish();
    EXPECT_EQ(present, group.rank() == 0 ? 11 : 10);
  });
}

TEST(Group, ServesMoreRanksThanBatches) {
  run_threads(7, [](Group& group) {
    group.begin_section("validate", 0);
    deal(group, 2, [&](int64_t) { EXPECT_EQ(gathered(group.all_gather("")), "0 1 "); });
    group.move_to(Place::after_loaders, -1);
    EXPECT_EQ(group.all_gather("").size(), 7U);
    group.finish();
  });
}

TEST(Group, ACallOnRankZeroOnlyNamesEveryRanksPlaceAndLine) {
  const Deadline deadline{seconds{10}, "a call on rank 0 only"};
  std::source_location only{};
  std::source_location sync{};
  const auto errors = errors_of(2, [&](Group& group) {
    group.begin_section("validate", 4);
    for (int64_t round = 0; round < 3; ++round) {
      group.move_to(0, round);
      const auto here = std::source_location::current();
      if (group.rank() == 0 && round == 2) {
        only = here;
        group.all_gather("x", here);
      }
    }
    group.move_to(Place::after_loaders, -1);
    const auto there = std::source_location::current();
    if (group.rank() == 1) sync = there;
    group.barrier(there);
  });
  expect_all(ErrorKind::mismatch, errors);
  expect_has(errors[1], "\nrank 0: validate epoch 4, loader 0, round 2, call 1: all_gather at " +
                            to_string(only) +
                            "\nrank 1: validate epoch 4, after the loaders, call 1: barrier at " +
                            to_string(sync));
  expect_has(
      errors[1],
      "rank 1 had a batch there but has passed by validate epoch 4, loader 0, round 2, call 1");
}

TEST(Group, ACallOnRankZeroOnlyIsFoundByFinishToo) {
  const Deadline deadline{seconds{10}, "a call on rank 0 only before finish"};
  const auto errors = errors_of(3, [](Group& group) {
    group.begin_section("predict", 0);
    group.move_to(1, 0);
    group.barrier();
    if (group.rank() == 0) group.barrier();
    group.finish();
  });
  expect_all(ErrorKind::mismatch, errors);
  expect_has(errors[0], "\nrank 0: predict epoch 0, loader 1, round 0, call 2: barrier at ");
  expect_has(errors[0], "\nrank 2: done: finish at ");
}

TEST(Group, ARankInALaterLoaderThatHadABatchIsAMismatch) {
  const Deadline deadline{seconds{10}, "a rank in a later loader"};
  const auto errors = errors_of(2, [](Group& group) {
    group.begin_section("validate", 0);
    group.move_to(0, 0);
    if (group.rank() == 0) group.barrier();
    group.move_to(1, 0);
    group.barrier();
  });
  expect_all(ErrorKind::mismatch, errors);
  expect_has(errors[0], "\nrank 1: validate epoch 0, loader 1, round 0, call 1: barrier at ");
}

TEST(Group, RemembersExactlyWhichRoundsItHadABatchIn) {
  // Rank 1 had rounds 0 and 2; it may be absent from 1 and not from 2, though it is beyond both.
  for (const int64_t called : {1, 2}) {
    const auto errors = errors_of(2, [&](Group& group) {
      group.begin_section("fit", 0);
      for (const int64_t round : {0, 1, 2}) {
        if (group.rank() == 1 && round == 1) continue;
        group.move_to(0, round);
        if (group.rank() == 0 && round == called) group.barrier();
      }
      group.finish();
    });
    EXPECT_EQ(errors[0].has_value(), called == 2);
    EXPECT_EQ(errors[1].has_value(), called == 2);
  }
}

TEST(Group, ARankInALaterSectionStillAnswersForAnEarlierOne) {
  const auto run = [](int64_t batches) {
    return errors_of(2, [=](Group& group) {
      group.begin_section("validate", 0);
      deal(group, batches, [&](int64_t k) {
        if (k == batches - 1 || (k == 3 && group.rank() == 0)) group.barrier();
      });
      group.begin_section("validate", 1);
      deal(group, 2, [&](int64_t) {});
      group.begin_section("validate", 2);
      group.barrier();
      group.finish();
    });
  };
  EXPECT_FALSE(run(3)[0]);  // batch 2 is rank 0's alone
  expect_all(ErrorKind::mismatch, run(4));
}

TEST(Group, AnotherOperationRootCountReductionOrLineIsAMismatch) {
  const Deadline deadline{seconds{30}, "a disagreement"};
  const std::vector<double> one{1};
  const std::vector<double> two{1, 2};
  const std::vector<int64_t> ints{1};
  const auto here = std::source_location::current();
  const std::vector<std::pair<std::function<void(Group&)>, std::function<void(Group&)>>> pairs{
      {[&](Group& g) { g.all_gather("", here); }, [&](Group& g) { g.barrier(here); }},
      {[&](Group& g) { g.broadcast("", 0, here); }, [&](Group& g) { g.broadcast("", 1, here); }},
      {[&](Group& g) { g.all_reduce(one, ReduceOp::sum, here); },
       [&](Group& g) { g.all_reduce(two, ReduceOp::sum, here); }},
      {[&](Group& g) { g.all_reduce(one, ReduceOp::sum, here); },
       [&](Group& g) { g.all_reduce(one, ReduceOp::max, here); }},
      {[&](Group& g) { g.all_reduce(one, ReduceOp::sum, here); },
       [&](Group& g) { g.all_reduce(ints, ReduceOp::sum, here); }},
      {[&](Group& g) { g.barrier(here); }, [&](Group& g) { g.barrier(); }},
  };
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto errors = errors_of(
        3, [&](Group& group) { (group.rank() == 1 ? pairs[i].second : pairs[i].first)(group); });
    expect_all(ErrorKind::mismatch, errors);
    expect_has(errors[2],
               i + 1 == pairs.size() ? "call from different lines" : "different operations");
  }
}

TEST(Group, AnotherSectionNameOrEpochIsAMismatch) {
  for (const bool stage : {true, false}) {
    const auto errors = errors_of(2, [=](Group& group) {
      const bool odd = group.rank() == 1;
      group.begin_section(stage && odd ? "test" : "validate", !stage && odd ? 1 : 0);
      group.barrier();
    });
    expect_all(ErrorKind::mismatch, errors);
    expect_has(errors[0], "in sections of different names");
  }
}

TEST(Group, ABroadcastFromARankWithoutABatchIsAMismatch) {
  const auto errors = errors_of(3, [](Group& group) {
    group.begin_section("predict", 0);
    deal(group, 2, [&](int64_t) { group.broadcast("x", 2); });
    group.finish();
  });
  expect_all(ErrorKind::mismatch, errors);
  expect_has(errors[0], "rank 2, the root of the broadcast, has no batch in this round");
}

TEST(Group, IsBrokenAfterAnErrorAndSaysTheSameWithoutCommunication) {
  errors_of(2, [](Group& group) {
    const auto first = error_of([&] {
      if (group.rank() == 0) {
        group.barrier();
      } else {
        group.all_gather("");
      }
    });
    const auto rounds = group.counts().header_rounds;
    const auto second = error_of([&] { group.barrier(); });
    ASSERT_TRUE(first && second);
    EXPECT_EQ(second->kind(), ErrorKind::mismatch);
    EXPECT_STREQ(first->what(), second->what());
    EXPECT_EQ(group.counts().header_rounds, rounds);
  });
}

TEST(Group, ARankThatThrowsMakesTheOthersLoseAPeerAndIsRethrown) {
  const Deadline deadline{seconds{10}, "a rank that throws"};
  std::atomic<int> lost{0};
  try {
    run_threads(3, [&](Group& group) {
      if (group.rank() == 1) throw std::out_of_range{"sample 7 is broken"};
      const auto error = error_of([&] { group.barrier(); });
      ASSERT_TRUE(error);
      if (error->kind() == ErrorKind::peer_lost) ++lost;
      expect_has(error, "rank 1 failed: sample 7 is broken");
      expect_has(error, "barrier at tests/comm/group_test.cpp:");
      throw Error{*error};
    });
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "sample 7 is broken");
  }
  EXPECT_EQ(lost.load(), 2);
}

TEST(Group, ARankThatReturnsWithoutFinishIsLost) {
  const Deadline deadline{seconds{10}, "a rank that returns"};
  const auto errors = errors_of(2, [](Group& group) {
    if (group.rank() == 0) group.barrier();
  });
  EXPECT_FALSE(errors[1]);
  expect_has(errors[0], "rank 1 has left the group");
}

TEST(Group, TakesCallsOfItsOwnerThreadOnly) {
  Group group = Group::self();
  std::optional<Error> error;
  std::thread{[&] { error = error_of([&] { group.barrier(); }); }}.join();
  expect_has(error, "from another thread");
  EXPECT_EQ(error->kind(), ErrorKind::usage);
  std::thread{[&] { error = error_of([&] { group.move_to(0, 0); }); }}.join();
  EXPECT_EQ(error->kind(), ErrorKind::usage);
  group.barrier();
}

/// Calls back from within a collective, as no transport should.
class NestingTransport final : public Transport {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  std::vector<std::string> exchange(std::string_view mine) override {
    nested = error_of([&] { group->barrier(); });
    return {std::string{mine}, std::string{mine}};
  }
  std::vector<std::string> exchange(std::string_view mine, std::span<const int64_t>) override {
    return exchange(mine);
  }
  void abort(const std::string&) override {}

  Group* group = nullptr;
  std::optional<Error> nested{};
};

TEST(Group, RefusesACallInsideAnother) {
  auto transport = std::make_unique<NestingTransport>();
  auto& nesting = *transport;
  Group group{std::move(transport)};
  nesting.group = &group;
  group.barrier();
  expect_has(nesting.nested, "inside another collective");
  EXPECT_EQ(nesting.nested->kind(), ErrorKind::usage);
}

TEST(Group, RefusesWrongRootsStepsBackAndCallsAfterFinish) {
  Group group = Group::self();
  EXPECT_EQ(error_of([&] { group.broadcast("", 1); })->kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { group.broadcast("", -1); })->kind(), ErrorKind::usage);
  group.begin_section("fit", 0);
  group.move_to(1, 3);
  group.move_to(1, 3);
  for (const auto& [loader, round] :
       {std::pair<int64_t, int64_t>{1, 2}, {0, 9}, {Place::after_loaders, 0}, {-2, -1}, {2, -2}}) {
    EXPECT_EQ(error_of([&] { group.move_to(loader, round); })->kind(), ErrorKind::usage)
        << loader << " " << round;
  }
  EXPECT_EQ(group.place(), (Place{1, 1, 3}));
  EXPECT_EQ(error_of([&] { group.begin_section("a stage of 17 b.", 0); }), std::nullopt);
  EXPECT_EQ(error_of([&] { group.begin_section("a stage of 17 byt", 0); })->kind(),
            ErrorKind::usage);
  group.finish();
  EXPECT_EQ(error_of([&] { group.barrier(); })->kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { group.finish(); })->kind(), ErrorKind::usage);
}

TEST(Group, ARankThatWaitsSaysForWhatAndWhereOthersWereLastSeen) {
  const Deadline deadline{seconds{60}, "the message of a rank that waits"};
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto lines_of_rank_0 = [&] {
    const std::lock_guard lock{mutex};
    std::vector<std::string> found;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(found), [](const auto& line) {
      return line.rfind("muster: rank 0 ", 0) == 0 && line.find("finish") != std::string::npos;
    });
    return found;
  };
  GroupOptions options;
  options.report_after = 0.1;
  options.report = [&](const std::string& line) {
    const std::lock_guard lock{mutex};
    lines.push_back(line);
  };
  std::source_location where{};
  std::chrono::duration<double> waited{};
  run_threads(
      2,
      [&](Group& group) {
        group.begin_section("predict", 2);
        group.barrier();
        if (group.rank() == 0) {
          where = std::source_location::current();
          group.finish(where);
        } else {
          const auto start = std::chrono::steady_clock::now();
          while (lines_of_rank_0().size() < 3) std::this_thread::sleep_for(milliseconds{1});
          waited = std::chrono::steady_clock::now() - start;
          group.finish();
        }
      },
      options);
  EXPECT_GT(waited.count(), 0.3) << "the third line belongs at 0.4 s";
  const std::string line = lines_of_rank_0()[0];
  EXPECT_EQ(line.rfind("muster: rank 0 has waited ", 0), 0U) << line;
  EXPECT_NE(line.find(", for done: finish at " + to_string(where) +
                      "; last seen: [rank 1: predict epoch 2, before the loaders, call 1: "
                      "barrier at tests/comm/group_test.cpp:"),
            std::string::npos)
      << line;
}

TEST(Group, CostsOneHeaderRoundWhereRanksAgree) {
  run_threads(2, [](Group& group) {
    group.barrier();
    EXPECT_EQ(group.counts().header_rounds, 1);
    EXPECT_EQ(group.counts().payload_rounds, 0);
    group.all_gather("abc");
    EXPECT_EQ(group.counts().header_rounds, 2);
    EXPECT_EQ(group.counts().payload_rounds, 1);
    group.finish();
  });
}

}  // namespace
}  // namespace muster
