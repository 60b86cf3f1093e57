#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/data/sampler.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace {

using muster::batches_of_samples;
using muster::BatchPlan;
using muster::RandomSampler;
using muster::SequentialSampler;
using List = std::vector<int64_t>;

List batch(const BatchPlan& plan, int64_t k) {
  const auto indices = plan.batch(k);
  return {indices.begin(), indices.end()};
}

TEST(Sampler, KeepsTheDataSetsOrderWithoutShuffle) {
  EXPECT_EQ(SequentialSampler{5}.order(3, 2), (List{0, 1, 2, 3, 4}));
}

TEST(Sampler, ShufflesEveryIndexOnce) {
  for (const int64_t samples : {0, 1, 2, 7, 1000}) {
    auto order = RandomSampler{samples}.order(5, 1);
    std::sort(order.begin(), order.end());
    List all(static_cast<size_t>(samples));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

TEST(Sampler, ShufflesByTheSeedAndTheEpoch) {
  std::set<List> orders;
  for (const uint64_t seed : {0, 1, 2}) {
    for (const int64_t epoch : {0, 1, 2}) {
      orders.insert(RandomSampler{50}.order(seed, epoch));
    }
  }
  EXPECT_EQ(orders.size(), 9);
}

TEST(Sampler, GivesTheOrdersThatWereRecorded) {
  EXPECT_EQ(RandomSampler{10}.order(42, 0), (List{8, 4, 9, 3, 6, 5, 0, 1, 7, 2}));
  EXPECT_EQ(RandomSampler{10}.order(42, 1), (List{8, 1, 2, 4, 0, 9, 3, 7, 5, 6}));
  EXPECT_EQ(RandomSampler{10}.order(0, 0), (List{4, 6, 2, 8, 1, 7, 9, 3, 0, 5}));
}

TEST(BatchPlan, CutsAnOrderIntoBatches) {
  const BatchPlan plan{{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 4, false};
  ASSERT_EQ(plan.size(), 3);
  EXPECT_EQ(batch(plan, 0), (List{9, 8, 7, 6}));
  EXPECT_EQ(batch(plan, 2), (List{1, 0}));
  EXPECT_THROW((void)plan.batch(3), muster::Error);
  EXPECT_THROW((void)plan.batch(-1), muster::Error);
  EXPECT_EQ((BatchPlan{{}, 4, false}.size()), 0);
}

TEST(BatchPlan, TakesBatchesThatAreGivenWhole) {
  const BatchPlan plan{{{3}, {1, 1, 0}}};
  ASSERT_EQ(plan.size(), 2);
  EXPECT_EQ(batch(plan, 0), List{3});
  EXPECT_EQ(batch(plan, 1), (List{1, 1, 0}));
  EXPECT_THROW((BatchPlan{{{3}, {}}}), muster::Error);
  plan.check_indices(4);
  EXPECT_THROW(plan.check_indices(3), muster::Error);
  EXPECT_THROW((BatchPlan{{{-1}}}.check_indices(3)), muster::Error);
}

TEST(BatchPlan, DropsALastBatchThatIsNotFullWhenAsked) {
  for (const int64_t samples : {0, 3, 8, 10}) {
    for (const bool drop : {false, true}) {
      const int64_t expected = samples / 4 + (samples % 4 != 0 && !drop ? 1 : 0);
      EXPECT_EQ(batches_of_samples(samples, 4, drop), expected);
      EXPECT_EQ((BatchPlan{List(static_cast<size_t>(samples)), 4, drop}.size()), expected);
    }
  }
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  EXPECT_THROW((void)batches_of_samples(3, 0, false), muster::Error);
  EXPECT_THROW(SequentialSampler{-1}, muster::Error);
  EXPECT_THROW(RandomSampler{-1}, muster::Error);
  EXPECT_THROW((void)(SequentialSampler{3}.order(0, -1)), muster::Error);
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
