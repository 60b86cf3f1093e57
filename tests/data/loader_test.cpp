#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/data/loader.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace {

using muster::Batch;
using muster::Loader;
using muster::LoaderOptions;
using muster::Rng;

struct Item {
  int64_t index = 0;
  double chance = 0;
};

/// Samples that take a random time, so that threads finish in any order.
std::shared_ptr<const muster::Dataset<Item>> slow_items(int64_t size) {
  return muster::make_dataset(size, [](int64_t index, Rng& rng) {
    thread_local Rng naps{std::hash<std::thread::id>{}(std::this_thread::get_id())};
    std::this_thread::sleep_for(std::chrono::microseconds{naps.below(300)});
    return Item{index, rng.uniform()};
  });
}

/// All that a batch tells, to compare two of them.
std::string text_of(const Batch<Item>& batch) {
  std::string text = std::to_string(batch.batch_idx()) + ":";
  for (const auto& [index, item] : batch.indexed()) {
    EXPECT_EQ(index, item.index);
    text += " " + std::to_string(index) + "=" + std::to_string(item.chance);
  }
  return text;
}

std::vector<std::string> read_rank(const Loader<Item>& loader, int64_t epoch, int64_t limit,
                                   int rank, int world) {
  std::vector<std::string> texts;
  auto batches = loader.batches(epoch, {.limit = limit, .rank = rank, .world_size = world});
  int64_t k = rank;
  while (const auto batch = batches.next()) {
    EXPECT_EQ(batch->batch_idx(), k);
    k += world;
    texts.push_back(text_of(*batch));
  }
  const int64_t all = std::min(limit, loader.size().value());
  EXPECT_EQ(static_cast<int64_t>(texts.size()), muster::batches_of_rank(all, rank, world));
  EXPECT_FALSE(batches.next().has_value());
  return texts;
}

/// The ranks' batches in the order of their numbers.
std::vector<std::string> read_all(const Loader<Item>& loader, int64_t epoch, int64_t limit,
                                  int world) {
  std::vector<std::vector<std::string>> ranks;
  size_t total = 0;
  for (int rank = 0; rank < world; ++rank) {
    ranks.push_back(read_rank(loader, epoch, limit, rank, world));
    total += ranks.back().size();
  }
  std::vector<std::string> all;
  for (size_t k = 0; k < total; ++k) {
    const auto& rank = ranks[k % ranks.size()];
    EXPECT_LT(k / ranks.size(), rank.size());
    all.push_back(rank.at(k / ranks.size()));
  }
  return all;
}

class LoaderOfEverySize : public testing::TestWithParam<int64_t> {};

TEST_P(LoaderOfEverySize, GivesTheSameBatchesWhateverRanksThreadsAndPrefetch) {
  for (const bool shuffle : {false, true}) {
    for (const int64_t batch_size : {1, 3}) {
      LoaderOptions options{
          .batch_size = batch_size, .shuffle = shuffle, .num_workers = 0, .seed = 9};
      const auto dataset = slow_items(GetParam());
      const auto expected = read_all(Loader<Item>{dataset, options}, 2, 1000, 1);
      EXPECT_EQ(static_cast<int64_t>(expected.size()), (GetParam() + batch_size - 1) / batch_size);
      for (const int world : {1, 2, 3, 5}) {
        for (const auto& [workers, prefetch] : {std::pair{0, 1}, {1, 1}, {3, 2}, {2, 4}, {4, 16}}) {
          options.num_workers = workers;
          options.prefetch = prefetch;
          EXPECT_EQ(read_all(Loader<Item>{dataset, options}, 2, 1000, world), expected)
              << "world " << world << ", workers " << workers;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LoaderOfEverySize, testing::Values(0, 1, 2, 4, 7, 16));

TEST(Loader, LimitsTheGlobalBatchesWhateverTheRanks) {
  const Loader<Item> loader{slow_items(20), {.batch_size = 2, .shuffle = true}};
  auto expected = read_all(loader, 0, 1000, 1);
  ASSERT_EQ(expected.size(), 10);
  expected.resize(4);
  for (const int world : {1, 2, 3, 5}) {
    EXPECT_EQ(read_all(loader, 0, 4, world), expected);
    EXPECT_TRUE(read_all(loader, 0, 0, world).empty());
  }
}

TEST(Loader, GivesANewOrderAndNewChancesEachEpoch) {
  const Loader<Item> loader{slow_items(8), {.batch_size = 8, .shuffle = true}};
  EXPECT_EQ(read_all(loader, 1, 1000, 1), read_all(loader, 1, 1000, 1));
  EXPECT_NE(read_all(loader, 1, 1000, 1), read_all(loader, 2, 1000, 1));
  const Loader<Item> in_order{slow_items(2), {.batch_size = 2}};
  EXPECT_NE(read_all(in_order, 1, 1000, 1), read_all(in_order, 2, 1000, 1));
}

TEST(Loader, KeysTheChancesOfASampleByItsIndexNotItsPlace) {
  const auto dataset = slow_items(6);
  auto shuffled = Loader<Item>{dataset, {.batch_size = 6, .shuffle = true, .seed = 4}}.batches(3);
  auto in_order = Loader<Item>{dataset, {.batch_size = 6, .seed = 4}}.batches(3);
  auto other_seed = Loader<Item>{dataset, {.batch_size = 6, .seed = 5}}.batches(3);
  const auto left = shuffled.next();
  const auto right = in_order.next();
  const auto other = other_seed.next();
  for (const auto& [index, item] : left->indexed()) {
    const auto place = static_cast<size_t>(index);
    EXPECT_EQ(item.chance, right->samples()[place].chance);
    EXPECT_NE(item.chance, other->samples()[place].chance);
  }
}

TEST(Loader, DropsALastBatchThatIsNotFullWhenAsked) {
  EXPECT_EQ(read_all(Loader<Item>{slow_items(7), {.batch_size = 3, .drop_last = true}}, 0, 1000, 2)
                .size(),
            2);
}

TEST(Loader, HoldsAtMostTheBatchesThatPrefetchAllows) {
  for (const int64_t prefetch : {1, 2, 4}) {
    std::atomic<int64_t> begun = 0;
    std::atomic<int64_t> most = 0;
    std::atomic<int64_t> taken = 0;
    const auto dataset = muster::make_dataset(40, [&](int64_t index, Rng& /*rng*/) {
      const int64_t ahead = ++begun - taken;
      int64_t seen = most;
      while (ahead > seen && !most.compare_exchange_weak(seen, ahead)) {
      }
      return Item{index};
    });
    const Loader<Item> loader{dataset, {.num_workers = 8, .prefetch = prefetch}};
    auto batches = loader.batches();
    for (int64_t k = 0; k < 40; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      // What is handed out no longer counts; counted before, as the threads may be quicker.
      ++taken;
      ASSERT_TRUE(batches.next().has_value());
    }
    EXPECT_LE(most, prefetch);
    EXPECT_EQ(most, prefetch) << "the threads never used their room";
  }
}

TEST(Loader, LoadsBeforeItIsAsked) {
  std::atomic<int> begun = 0;
  const auto dataset = muster::make_dataset(10, [&](int64_t index, Rng& /*rng*/) {
    ++begun;
    return Item{index};
  });
  const auto batches = Loader<Item>{dataset, {.prefetch = 3}}.batches();
  for (int i = 0; i < 2000 && begun < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(begun, 3);
}

/// Reads until an error comes; the number of batches before it, and the error.
std::pair<int, muster::Error> read_to_error(const Loader<Item>& loader) {
  auto batches = loader.batches();
  int read = 0;
  try {
    while (batches.next()) {
      ++read;
    }
  } catch (const muster::Error& error) {
    EXPECT_THROW((void)batches.next(), muster::Error) << "the error was forgotten";
    return {read, error};
  }
  ADD_FAILURE() << "no error came";
  return {read, muster::Error{muster::ErrorKind::user, ""}};
}

std::shared_ptr<const muster::Dataset<Item>> items_that_throw(int64_t bad,
                                                              std::function<void()> act) {
  return muster::make_dataset(20, [bad, act = std::move(act)](int64_t index, Rng& /*rng*/) {
    if (index == bad) {
      act();
    }
    std::this_thread::sleep_for(std::chrono::microseconds{index == bad - 1 ? 2000 : 0});
    return Item{index};
  });
}

TEST(Loader, GivesTheErrorOfASampleWithItsIndexAfterTheBatchesBeforeIt) {
  const auto unreadable = items_that_throw(
      17, [] { muster::fail(muster::ErrorKind::data, "photo.png: cannot be read"); });
  const auto foreign = items_that_throw(17, [] { throw std::runtime_error{"odd"}; });
  const auto strange = items_that_throw(17, [] { throw 3; });
  for (const int workers : {0, 1, 4}) {
    const auto [read, error] = read_to_error(
        Loader<Item>{unreadable, {.batch_size = 4, .num_workers = workers, .name = "val"}});
    EXPECT_EQ(read, 4);
    EXPECT_EQ(error.kind(), muster::ErrorKind::data);
    EXPECT_STREQ(error.what(), "sample 17 of data set 'val': photo.png: cannot be read");
    EXPECT_NE(std::string{error.where().file_name()}.find("loader_test"), std::string::npos);

    const auto user = read_to_error(Loader<Item>{foreign, {.num_workers = workers}});
    EXPECT_EQ(user.first, 17);
    EXPECT_EQ(user.second.kind(), muster::ErrorKind::user);
    EXPECT_STREQ(user.second.what(), "sample 17: odd");

    const auto odd = read_to_error(Loader<Item>{strange, {.num_workers = workers}});
    EXPECT_STREQ(odd.second.what(), "sample 17: an exception that is no std::exception");
  }
}

TEST(Loader, ShowsATorchErrorWithoutItsBacktrace) {
  const auto dataset = items_that_throw(0, [] { (void)at::full({2}, 1.0).view({3}); });
  const auto [read, error] = read_to_error(Loader<Item>{dataset});
  EXPECT_EQ(error.kind(), muster::ErrorKind::user);
  EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos) << error.what();
}

TEST(Loader, LoadsNothingAfterABadSampleIsKnown) {
  std::atomic<int> begun = 0;
  const auto dataset = muster::make_dataset(1000, [&](int64_t index, Rng& /*rng*/) {
    ++begun;
    muster::check(index != 0, "bad");
    return Item{index};
  });
  auto batches = Loader<Item>{dataset, {.num_workers = 1, .prefetch = 100}}.batches();
  EXPECT_THROW((void)batches.next(), muster::Error);
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_EQ(begun, 1);
}

TEST(Loader, EndsPromptlyInTheMiddleOfABatch) {
  std::atomic<int> begun = 0;
  const auto dataset = muster::make_dataset(10000, [&](int64_t index, Rng& /*rng*/) {
    ++begun;
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    return Item{index};
  });
  const auto start = std::chrono::steady_clock::now();
  {
    const auto batches = Loader<Item>{dataset, {.batch_size = 1000, .num_workers = 2}}.batches();
    while (begun < 2) {
      std::this_thread::yield();
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{2});
  EXPECT_LE(begun, 8);
}

TEST(Loader, MayGoBeforeItsBatches) {
  auto loader =
      std::make_unique<Loader<Item>>(std::vector<Item>(5), LoaderOptions{.batch_size = 2});
  auto batches = loader->batches();
  loader.reset();
  auto moved = std::move(batches);
  int64_t samples = 0;
  while (const auto batch = moved.next()) {
    samples += batch->size();
  }
  EXPECT_EQ(samples, 5);
}

struct Photo {
  at::Tensor image{};
  std::vector<at::Tensor> layers{};
};

TEST(Loader, HandsOutAlignedMemoryAndNoGradientsInEveryThread) {
  alignas(64) static std::array<float, 64> memory{};
  const auto dataset = muster::make_dataset(4, [](int64_t index, Rng& /*rng*/) {
    const auto offset = static_cast<size_t>(index + 1);
    const at::Tensor odd = at::from_blob(memory.data() + offset, {3}, at::kFloat);
    EXPECT_FALSE(at::GradMode::is_enabled());
    return Photo{odd, {odd, odd}};
  });
  for (const int workers : {0, 2}) {
    auto batches = Loader<Photo>{dataset, {.num_workers = workers}}.batches();
    while (const auto batch = batches.next()) {
      for (const auto& photo : batch->samples()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(photo.image.const_data_ptr()) % 64, 0);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(photo.layers[1].const_data_ptr()) % 64, 0);
      }
    }
  }
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(Loader, RefusesOptionsOutOfRange) {
  const auto dataset = slow_items(3);
  EXPECT_THROW((Loader<Item>{dataset, {.batch_size = 0}}), muster::Error);
  EXPECT_THROW((Loader<Item>{dataset, {.num_workers = -1}}), muster::Error);
  EXPECT_THROW((Loader<Item>{dataset, {.prefetch = 0}}), muster::Error);
  EXPECT_THROW((Loader<Item>{std::shared_ptr<const muster::Dataset<Item>>{}}), muster::Error);
  const Loader<Item> loader{dataset};
  EXPECT_THROW((void)loader.batches(-1), muster::Error);
  EXPECT_THROW((void)loader.batches(0, {.limit = -1}), muster::Error);
  EXPECT_THROW((void)loader.batches(0, {.rank = 2, .world_size = 2}), muster::Error);
  EXPECT_THROW((void)loader.batches(0, {.world_size = 2, .first = -2}), muster::Error);
  EXPECT_THROW((void)loader.batches(0, {.world_size = 0}), muster::Error);
}

TEST(Loader, AShareThatBeginsLaterHasTheSameBatchesWithoutTheFirstOnes) {
  const Loader<Item> loader{slow_items(11), {.batch_size = 2, .shuffle = true, .seed = 3}};
  const auto rest_of = [&](int64_t first, int64_t limit) {
    std::vector<std::string> texts;
    auto batches = loader.batches(2, {.limit = limit, .rank = 1, .world_size = 2, .first = first});
    while (const auto batch = batches.next()) {
      texts.push_back(std::to_string(batch->batch_idx()) + ": " + text_of(*batch));
    }
    return texts;
  };
  auto all = rest_of(0, 100);
  ASSERT_EQ(all.size(), 3U);
  all.erase(all.begin());
  EXPECT_EQ(rest_of(2, 100), all);
  all.pop_back();
  EXPECT_EQ(rest_of(2, 5), all);
  EXPECT_TRUE(rest_of(100, 200).empty());
}

TEST(Loader, DealsWhatIsLeftOfAnEpochToAnyNumberOfRanks) {
  const Loader<Item> loader{slow_items(23), {.batch_size = 2, .shuffle = true}};
  const auto all = read_all(loader, 1, 1000, 1);
  for (const int world : {1, 2, 3, 5}) {
    for (const int64_t first : {1, 3, 4, 11}) {
      std::vector<std::string> rest(all.size());
      for (int rank = 0; rank < world; ++rank) {
        auto batches = loader.batches(1, {.rank = rank, .world_size = world, .first = first});
        while (const auto batch = batches.next()) {
          rest.at(static_cast<size_t>(batch->batch_idx())) = text_of(*batch);
        }
      }
      for (size_t k = 0; k < all.size(); ++k) {
        EXPECT_EQ(rest[k], k < static_cast<size_t>(first) ? "" : all[k]);
      }
    }
  }
}

TEST(Loader, ALoaderThatShufflesKeepsTheDataSetsOrderWhereTheShareSaysSo) {
  const auto dataset = slow_items(9);
  const Loader<Item> shuffled{dataset, {.batch_size = 4, .shuffle = true}};
  auto batches = shuffled.batches(1, {.shuffle = false});
  EXPECT_EQ(batches.next()->indices(), (std::vector<int64_t>{0, 1, 2, 3}));
}

}  // namespace
