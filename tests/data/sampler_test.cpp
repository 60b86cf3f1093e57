#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/data/sampler.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace {

using muster::Sampler;

TEST(Sampler, KeepsTheDataSetsOrderWithoutShuffle) {
  EXPECT_EQ((Sampler{5, {.seed = 3}}.order(2)), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Sampler, ShufflesEveryIndexOnce) {
  for (const int64_t samples : {0, 1, 2, 7, 1000}) {
    auto order = Sampler{samples, {.shuffle = true, .seed = 5}}.order(1);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> all(static_cast<size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

TEST(Sampler, ShufflesByTheSeedAndTheEpochAlone) {
  std::set<std::vector<int64_t>> orders;
  for (const uint64_t seed : {0, 1, 2}) {
    for (const int64_t epoch : {0, 1, 2}) {
      const auto order = Sampler{50, {.batch_size = 1, .shuffle = true, .seed = seed}}.order(epoch);
      EXPECT_EQ(
          order,
          (Sampler{50, {.batch_size = 7, .shuffle = true, .drop_last = true, .seed = seed}}.order(
              epoch)));
      orders.insert(order);
    }
  }
  EXPECT_EQ(orders.size(), 9);
}

TEST(Sampler, GivesTheOrdersThatWereRecorded) {
  const Sampler sampler{10, {.shuffle = true, .seed = 42}};
  EXPECT_EQ(sampler.order(0), (std::vector<int64_t>{8, 4, 9, 3, 6, 5, 0, 1, 7, 2}));
  EXPECT_EQ(sampler.order(1), (std::vector<int64_t>{8, 1, 2, 4, 0, 9, 3, 7, 5, 6}));
  EXPECT_EQ((Sampler{10, {.shuffle = true}}.order(0)),
            (std::vector<int64_t>{4, 6, 2, 8, 1, 7, 9, 3, 0, 5}));
}

TEST(Sampler, CutsTheOrderIntoBatches) {
  const Sampler sampler{10, {.batch_size = 4}};
  ASSERT_EQ(sampler.batches(), 3);
  const auto order = sampler.order(0);
  EXPECT_EQ(sampler.batch(order, 0), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(sampler.batch(order, 2), (std::vector<int64_t>{8, 9}));
  EXPECT_EQ(sampler.samples_in(1), 4);
  EXPECT_EQ(sampler.samples_in(2), 2);
  EXPECT_THROW((void)sampler.samples_in(3), muster::Error);
  EXPECT_THROW((void)sampler.samples_in(-1), muster::Error);
}

TEST(Sampler, DropsALastBatchThatIsNotFullWhenAsked) {
  EXPECT_EQ((Sampler{10, {.batch_size = 4, .drop_last = true}}.batches()), 2);
  EXPECT_EQ((Sampler{8, {.batch_size = 4, .drop_last = true}}.batches()), 2);
  EXPECT_EQ((Sampler{3, {.batch_size = 4, .drop_last = true}}.batches()), 0);
  EXPECT_EQ((Sampler{3, {.batch_size = 4}}.batches()), 1);
  EXPECT_EQ((Sampler{0, {.batch_size = 4}}.batches()), 0);
}

TEST(Sampler, RefusesABatchSizeBelowOne) {
  EXPECT_THROW((Sampler{3, {.batch_size = 0}}), muster::Error);
  EXPECT_THROW((Sampler{-1, {}}), muster::Error);
  EXPECT_THROW((void)(Sampler{3, {}}.order(-1)), muster::Error);
}

TEST(Sampler, DealsBatchesToRanksWithoutLossOrRepetition) {
  for (const int world : {1, 2, 3, 5}) {
    for (int64_t batches = 0; batches < 12; ++batches) {
      for (int rank = 0; rank < world; ++rank) {
        int64_t expected = 0;
        for (int64_t k = rank; k < batches; k += world) {
          ++expected;
        }
        EXPECT_EQ(muster::batches_of_rank(batches, rank, world), expected);
      }
    }
  }
  EXPECT_THROW((void)muster::batches_of_rank(3, 2, 2), muster::Error);
  EXPECT_THROW((void)muster::batches_of_rank(3, -1, 2), muster::Error);
  EXPECT_THROW((void)muster::batches_of_rank(3, 0, 0), muster::Error);
}

}  // namespace
