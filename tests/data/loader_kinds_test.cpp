// Loaders of samples that are skipped, of samplers and batch samplers, and of streams.

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/data/loader.h>

#include <atomic>
#include <map>
#include <stdexcept>

namespace {

using muster::IndexedSample;
using muster::Loader;
using muster::LoaderOptions;
using muster::Rng;
using muster::Share;
using muster::StreamContext;
using List = std::vector<int64_t>;

struct Item {
  int64_t index = 0;
  double chance = 0;
};

/// Global number and indices of each batch of one rank, in the order in which they come.
using Batches = std::vector<std::pair<int64_t, List>>;

Batches read(const Loader<Item>& loader, const Share& share = {}, int64_t epoch = 0) {
  Batches out;
  auto batches = loader.batches(epoch, share);
  while (const auto batch = batches.next()) {
    for (const auto& [index, item] : batch->indexed()) EXPECT_EQ(index, item.index);
    out.emplace_back(batch->batch_idx(), batch->indices());
  }
  EXPECT_FALSE(batches.next().has_value());
  return out;
}

Batches read_all(const Loader<Item>& loader, int world, Share share = {}) {
  std::map<int64_t, List> all;
  share.world_size = world;
  for (share.rank = 0; share.rank < world; ++share.rank) {
    for (auto& [k, indices] : read(loader, share)) {
      EXPECT_EQ(k % world, share.rank);
      EXPECT_TRUE(all.emplace(k, std::move(indices)).second) << "batch " << k << " came twice";
    }
  }
  return {all.begin(), all.end()};
}

/// `count` samples one after another, in one order for all ranks.
std::shared_ptr<const muster::IterableDataset<Item>> stream_of(int64_t count) {
  return muster::make_iterable([count](const StreamContext& context) {
    return [count, context, i = int64_t{0}]() mutable -> std::optional<Item> {
      if (i == count) return std::nullopt;
      Rng rng = context.rng(i);
      return Item{i++, rng.uniform()};
    };
  });
}

TEST(SkippedSamples, AreLeftOutOfTheirBatchWhichKeepsItsNumber) {
  const auto dataset = muster::make_dataset(10, [](int64_t index, Rng& rng) -> std::optional<Item> {
    if (index == 1 || index == 4 || index == 5 || index == 9) return std::nullopt;
    return Item{index, rng.uniform()};
  });
  EXPECT_TRUE(dataset->may_skip());
  for (const int workers : {0, 2}) {
    const Loader<Item> loader{dataset, {.batch_size = 2, .num_workers = workers}};
    EXPECT_FALSE(loader.has_known_counts());
    EXPECT_EQ(loader.size(), 5);
    const Batches expected{{0, {0}}, {1, {2, 3}}, {2, {}}, {3, {6, 7}}, {4, {8}}};
    for (const int world : {1, 2, 3, 7}) EXPECT_EQ(read_all(loader, world), expected);
  }
  Rng rng{1};
  EXPECT_THROW((void)dataset->get(4, rng), muster::Error);
  const muster::Subset<Item> part{dataset, {3, 4}};
  EXPECT_TRUE(part.may_skip());
  EXPECT_FALSE(part.find(1, rng).has_value());
  EXPECT_TRUE(Loader<Item>{std::vector<Item>(3)}.has_known_counts());
}

class Backwards : public muster::Sampler {
 public:
  [[nodiscard]] int64_t size() const override { return 5; }
  [[nodiscard]] List order(uint64_t seed, int64_t epoch) const override {
    return {4, 3, static_cast<int64_t>(seed), epoch, bad};
  }
  int64_t bad = 0;
};

class Pairs : public muster::BatchSampler {
 public:
  [[nodiscard]] int64_t size() const override { return 3; }
  [[nodiscard]] std::vector<List> batches(uint64_t /*seed*/, int64_t epoch) const override {
    if (epoch == 1) return {{0}};
    return {{5}, {0, 1, 2}, {4, 3}};
  }
};

std::shared_ptr<const muster::Dataset<Item>> items(int64_t count) {
  return muster::make_dataset(count, [](int64_t index, Rng& rng) {
    return Item{index, rng.uniform()};
  });
}

TEST(CustomSampler, DecidesOnTheOrder) {
  const auto sampler = std::make_shared<Backwards>();
  const Loader<Item> loader{items(6), sampler, {.batch_size = 2, .seed = 2}};
  EXPECT_EQ(loader.size(), 3);
  const Batches expected{{0, {4, 3}}, {1, {2, 0}}, {2, {0}}};
  for (const int world : {1, 2, 3, 4}) EXPECT_EQ(read_all(loader, world), expected);
  EXPECT_EQ(read(loader, {}, 5)[1].second, (List{2, 5}));
  sampler->bad = 6;
  EXPECT_THROW((void)loader.batches(), muster::Error);
}

TEST(CustomSampler, MayGiveWholeBatches) {
  const Loader<Item> loader{items(6), std::make_shared<Pairs>()};
  EXPECT_EQ(loader.size(), 3);
  const Batches expected{{0, {5}}, {1, {0, 1, 2}}, {2, {4, 3}}};
  for (const int world : {1, 2, 3, 4}) EXPECT_EQ(read_all(loader, world), expected);
  EXPECT_THROW((void)loader.batches(1), muster::Error) << "fewer batches than size() says";
}

TEST(CustomSampler, LeavesNoOptionsThatContradictIt) {
  const auto sampler = std::make_shared<Backwards>();
  const auto pairs = std::make_shared<Pairs>();
  EXPECT_THROW((Loader<Item>{items(6), sampler, {.shuffle = true}}), muster::Error);
  EXPECT_THROW((Loader<Item>{items(6), pairs, {.batch_size = 2}}), muster::Error);
  EXPECT_THROW((Loader<Item>{items(6), pairs, {.drop_last = true}}), muster::Error);
  EXPECT_THROW((Loader<Item>{stream_of(3), {.shuffle = true}}), muster::Error);
  EXPECT_THROW((Loader<Item>{items(6), std::shared_ptr<const muster::Sampler>{}}), muster::Error);
  EXPECT_THROW((Loader<Item>{std::shared_ptr<const muster::IterableDataset<Item>>{}}),
               muster::Error);
}

TEST(Stream, IsDealtByBatchesAsADataSetOfThatSizeWouldBe) {
  for (const int64_t count : {0, 1, 5, 12, 13}) {
    for (const bool drop_last : {false, true}) {
      LoaderOptions options{.batch_size = 3, .drop_last = drop_last};
      const auto expected = read_all(Loader<Item>{items(count), options}, 1);
      for (const int workers : {0, 1, 4}) {
        options.num_workers = workers;
        const Loader<Item> loader{stream_of(count), options};
        EXPECT_FALSE(loader.size().has_value());
        EXPECT_FALSE(loader.has_known_counts());
        for (const int world : {1, 2, 3, 7}) EXPECT_EQ(read_all(loader, world), expected);
      }
    }
  }
}

TEST(Stream, KeysChancesAsADataSetDoes) {
  auto streamed = Loader<Item>{stream_of(4), {.batch_size = 4, .seed = 8}}.batches(3);
  auto indexed = Loader<Item>{items(4), {.batch_size = 4, .seed = 8}}.batches(3);
  const auto left = streamed.next();
  const auto right = indexed.next();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(left->samples()[i].chance, right->samples()[i].chance);
  }
}

TEST(Stream, TakesALimitAndAFirstBatch) {
  const Loader<Item> loader{stream_of(11), {.batch_size = 2}};
  EXPECT_EQ(read_all(loader, 2, {.limit = 3}), (Batches{{0, {0, 1}}, {1, {2, 3}}, {2, {4, 5}}}));
  EXPECT_EQ(read_all(loader, 2, {.first = 4}), (Batches{{4, {8, 9}}, {5, {10}}}));
  EXPECT_TRUE(read_all(loader, 2, {.limit = 0}).empty());
}

TEST(Stream, ShardedGivesEachRankWhatItHasAndNumbersItsBatchesAsItsOwn) {
  const auto sharded = muster::make_sharded([](const StreamContext& context) {
    const int64_t count = context.rank == 0 ? 7 : 4;
    return [context, count, i = int64_t{0}]() mutable -> std::optional<IndexedSample<Item>> {
      if (i == count) return std::nullopt;
      const int64_t index = int64_t{100} * context.rank + i++;
      return IndexedSample<Item>{index, {index}};
    };
  });
  const Loader<Item> loader{sharded, {.batch_size = 3}};
  const Batches expected{
      {0, {0, 1, 2}}, {1, {100, 101, 102}}, {2, {3, 4, 5}}, {3, {103}}, {4, {6}}};
  EXPECT_EQ(read_all(loader, 2), expected);
  EXPECT_EQ(read_all(loader, 2, {.first = 2}), (Batches{expected.begin() + 2, expected.end()}));
}

TEST(Stream, GivesItsErrorAfterTheBatchesBeforeIt) {
  const auto broken = muster::make_iterable([](const StreamContext&) {
    return [i = int64_t{0}]() mutable -> std::optional<Item> {
      if (i == 5) throw std::runtime_error{"cut short"};
      return Item{i++};
    };
  });
  for (const int workers : {0, 2}) {
    auto batches =
        Loader<Item>{broken, {.batch_size = 2, .num_workers = workers, .name = "tar"}}.batches();
    EXPECT_TRUE(batches.next().has_value());
    EXPECT_TRUE(batches.next().has_value());
    try {
      (void)batches.next();
      ADD_FAILURE() << "no error came";
    } catch (const muster::Error& error) {
      EXPECT_STREQ(error.what(), "the sample after 4 of data set 'tar': cut short");
    }
    EXPECT_THROW((void)batches.next(), muster::Error);
  }
}

TEST(Stream, WithoutAnEndIsReadNoFurtherThanPrefetchAllows) {
  std::atomic<int64_t> given = 0;
  const auto endless = muster::make_iterable([&given](const StreamContext&) {
    return [&given, i = int64_t{0}]() mutable -> std::optional<Item> {
      ++given;
      return Item{i++};
    };
  });
  {
    auto batches = Loader<Item>{endless, {.batch_size = 2, .prefetch = 3}}.batches();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(batches.next().has_value());
  }
  EXPECT_LE(given, 2 * (10 + 3 + 1));
}

}  // namespace
