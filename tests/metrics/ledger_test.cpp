#include <muster/base/error.h>
#include <muster/metrics/ledger.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace muster::test {
namespace {

constexpr Moment in_hook(int64_t call) { return {Moment::after, Moment::after, call}; }

/// What `fill(rank)` gave on each of the ranks, as every rank has it after the sync.
Ledger merged(int ranks, const std::function<void(int rank, Ledger&)>& fill) {
  Ledger all;
  for (int rank = 0; rank < ranks; ++rank) {
    Ledger mine;
    fill(rank, mine);
    all.merge(mine.state());
  }
  return all;
}

/// Calls `log(sample, call)` as a hook at the epoch's end does that logs what its rank has kept:
/// batches of 2 of 7 samples, dealt; `call` counts on each rank.
Ledger logged_by_sample(int ranks,
                        const std::function<void(Ledger&, int64_t sample, int64_t call)>& log) {
  return merged(ranks, [&](int rank, Ledger& ledger) {
    int64_t call = 0;
    for (int64_t sample = 0; sample < 7; ++sample) {
      if (sample / 2 % ranks == rank) {
        log(ledger, sample, call++);
      }
    }
  });
}

LoggedImage image(std::string key, int64_t index, int64_t call, std::string sha) {
  LoggedImage out{.moment = in_hook(call)};
  out.record.key = std::move(key);
  out.record.index = index;
  out.record.sha256 = std::move(sha);
  return out;
}

TEST(Ledger, ValuesOfAHookStandInOneOrderWhateverTheNumberOfRanks) {
  const auto names = [](int ranks) {
    const Ledger all = logged_by_sample(ranks, [](Ledger& ledger, int64_t sample, int64_t call) {
      ledger.log("of " + std::to_string(sample), 1.0, 1, ReduceFx::mean, in_hook(call));
    });
    std::vector<std::string> out;
    for (const auto& [name, value] : all.values()) {
      out.push_back(name);
    }
    return out;
  };
  EXPECT_EQ(names(1).size(), 7U);
  for (const int ranks : {2, 3, 5}) {
    EXPECT_EQ(names(ranks), names(1)) << ranks;
  }
}

TEST(Ledger, ValuesOfBatchesStandInTheOrderOfTheirCalls) {
  const Ledger all = merged(2, [](int rank, Ledger& ledger) {
    ledger.log("z of " + std::to_string(rank), 1, 1, ReduceFx::mean, {0, rank, 0});
    ledger.log("a of " + std::to_string(rank), 1, 1, ReduceFx::mean, {0, rank, 1});
  });
  std::string order;
  for (const auto& [name, value] : all.values()) {
    order += name + ", ";
  }
  EXPECT_EQ(order, "z of 0, a of 0, z of 1, a of 1, ");
}

TEST(Ledger, ImagesOfAHookStandInOneOrderWhateverTheNumberOfRanks) {
  const auto order = [](int ranks) {
    Ledger all = logged_by_sample(ranks, [](Ledger& ledger, int64_t sample, int64_t call) {
      const std::string name = std::to_string(sample);
      ledger.add_image(image("z", sample, 2 * call, "z" + name));
      ledger.add_image(image("a", sample, 2 * call + 1, "a" + name));
    });
    std::string out;
    for (const auto& item : all.images()) {
      out += item.record.sha256 + " ";
    }
    return out;
  };
  EXPECT_EQ(order(1), "a0 z0 a1 z1 a2 z2 a3 z3 a4 z4 a5 z5 a6 z6 ");
  for (const int ranks : {2, 3, 5}) {
    EXPECT_EQ(order(ranks), order(1)) << ranks;
  }
}

TEST(Ledger, WhatEveryRankLogsAlikeInAHookIsThereOnce) {
  for (const int ranks : {1, 2, 4}) {
    const Ledger all = merged(ranks, [](int rank, Ledger& ledger) {
      ledger.add_image(image("matrix", 0, rank, "digest"));  // the calls before it differ
      ledger.add_text({"summary", "all is well", in_hook(rank)});
      ledger.add_row("classes", {"name", "n"}, {0, {std::string{"cat"}, std::nan("")}});
    });
    EXPECT_EQ(all.images().size(), 1U) << ranks;
    EXPECT_EQ(all.texts().size(), 1U) << ranks;
    ASSERT_EQ(all.tables().size(), 1U);
    EXPECT_EQ(all.tables()[0].rows.size(), 1U) << ranks;
  }
}

TEST(Ledger, EqualImagesOfABatchAreAllThere) {
  Ledger ledger;
  for (int64_t place = 0; place < 2; ++place) {
    LoggedImage twin = image("pair", 0, 0, "digest");
    twin.moment = {0, 0, 0};
    twin.place = place;
    ledger.add_image(twin);
    ledger.add_image(twin);
  }
  EXPECT_EQ(ledger.images().size(), 4U);
}

TEST(Ledger, RowsThatContradictEachOtherAreAnErrorThatNamesTheSample) {
  const auto message_of = [](const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_NE(message_of([] {
              Ledger ledger;
              ledger.add_row("t", {"n"}, {7, {1.0}});
              ledger.add_row("t", {"n"}, {7, {1.0}});
            }).find("sample 7 has a row"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              merged(2, [](int rank, Ledger& ledger) {
                ledger.add_row("t", {"n"}, {7, {static_cast<double>(rank)}});
              });
            }).find("different rows of sample 7"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              Ledger{}.add_row("t", {"n", "n"}, {0, {1.0, 1.0}});
            }).find("two columns"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              Ledger{}.add_row("t", {"index"}, {0, {1.0}});
            }).find("index"),
            std::string::npos);
}

TEST(Ledger, AReductionThatChangesIsAnErrorOnOneRankAndBetweenRanks) {
  Ledger ledger;
  ledger.log("x", 1, 1, ReduceFx::mean, {});
  EXPECT_THROW(ledger.log("x", 1, 1, ReduceFx::sum, {}), Error);
  EXPECT_THROW(merged(2,
                      [](int rank, Ledger& mine) {
                        mine.log("x", 1, 1, rank == 0 ? ReduceFx::min : ReduceFx::max, {});
                      }),
               Error);
  EXPECT_THROW(ledger.log("x", 1, INT64_MAX, ReduceFx::mean, {}), Error);
}

}  // namespace
}  // namespace muster::test
