#include "src/train/collect_internal.h"
#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

#include <muster/base/files.h>
#include <muster/train/prediction_shard.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <mutex>

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using Read = std::vector<std::pair<PredictionKey, std::string>>;

/// What sample `index` was predicted to be: as long as no other.
std::string output(int64_t index) {
  return std::string(static_cast<size_t>(index * 37 % 101), static_cast<char>('a' + index % 26));
}

/// A shard of rank `rank` of `ranks`, its samples in falling order.
void write_shard(const fs::path& path, int rank, int ranks, int64_t samples) {
  PredictionShardWriter writer{path};
  for (int64_t i = samples - 1; i >= 0; --i) {
    if (i % ranks == rank) writer.add({.loader = i % 2, .index = i}, output(i));
  }
  writer.close();
}

Read all_in_order(int64_t samples) {
  Read all;
  for (int64_t loader = 0; loader < 2; ++loader) {
    for (int64_t i = loader; i < samples; i += 2) all.push_back({{loader, i}, output(i)});
  }
  return all;
}

TEST(PredictionShard, ShardsOfAnyNumberOfRanksMergeToTheOrderOfTheData) {
  for (const int64_t samples : {0, 1, 50}) {
    for (const int ranks : {1, 2, 3, 7}) {
      const TempFolder folder;
      std::vector<fs::path> shards;
      for (int rank = 0; rank < ranks; ++rank) {
        shards.push_back(folder / std::to_string(rank));
        write_shard(shards.back(), rank, ranks, samples);
      }
      Read merged;
      merge_shards(shards, [&](const PredictionKey& key, std::string_view bytes) {
        merged.emplace_back(key, bytes);
      });
      EXPECT_EQ(merged, all_in_order(samples));
    }
  }
}

TEST(PredictionShard, ValuesComeBackAsWhatTheyWere) {
  struct Box {
    std::string name{};
    std::vector<double> sides{};
  };
  const TempFolder folder;
  PredictionShardWriter writer{folder / "shard"};
  writer.add({.index = 3}, to_bytes(to_value(Box{"b", {1.5, 2}})));
  writer.close();
  int times = 0;
  merge_shards<Box>({folder / "shard"}, [&](const PredictionKey& key, const Box& box) {
    EXPECT_EQ(key.index, 3);
    EXPECT_EQ(box.name, "b");
    EXPECT_EQ(box.sides, (std::vector<double>{1.5, 2}));
    ++times;
  });
  EXPECT_EQ(times, 1);
}

TEST(PredictionShard, AnyCutAndAnyFlippedBitIsAnError) {
  const TempFolder folder;
  write_shard(folder / "whole", 0, 1, 5);
  const std::string whole = read_file(folder / "whole");
  const auto read = [&](const std::string& bytes) {
    std::ofstream{folder / "broken", std::ios::binary} << bytes;
    int64_t predictions = 0;
    merge_shards({folder / "broken"},
                 [&](const PredictionKey&, std::string_view) { ++predictions; });
    return predictions;
  };
  EXPECT_EQ(read(whole), 5);
  for (size_t size = 0; size < whole.size(); ++size) {
    try {
      EXPECT_LT(read(whole.substr(0, size)), 5) << size;  // cut between two predictions
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
    }
  }
  for (size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1U << bit % 8));
    EXPECT_EQ(error_of([&] { read(flipped); }).kind(), ErrorKind::data) << bit;
  }
}

TEST(PredictionShard, SaysWhyItCannotBeReadOrWritten) {
  errno = 0;
  const Error full = error_of([] {
    PredictionShardWriter writer{"/dev/full"};
    writer.add({}, std::string(100'000, 'x'));
  });
  EXPECT_EQ(full.kind(), ErrorKind::io);
  EXPECT_STREQ(full.what(), "cannot write to /dev/full: No space left on device");
  // The memory of a process has nothing at address 0, so that reading it fails.
  const Error unreadable = error_of([] { PredictionShard{"/proc/self/mem"}; });
  EXPECT_EQ(unreadable.kind(), ErrorKind::data);
  EXPECT_STREQ(unreadable.what(), "cannot read /proc/self/mem: Input/output error");
  const TempFolder folder;
  const Error no_file = error_of([&] { PredictionShard{folder.path()}; });
  EXPECT_EQ(no_file.kind(), ErrorKind::data);
  EXPECT_EQ(no_file.what(), "cannot read " + folder.path().string() + ": Is a directory");
}

TEST(PredictionShard, ReplacesALinkAndLeavesWhatItPointsTo) {
  const TempFolder folder;
  write_file_atomically(folder / "victim", "as it was");
  fs::create_symlink("victim", folder / "shard");
  fs::create_hard_link(folder / "victim", folder / "other");
  for (const auto* name : {"shard", "other"}) {
    write_shard(folder / name, 0, 1, 5);
    EXPECT_EQ(read_file(folder / "victim"), "as it was");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / name)));
    EXPECT_EQ(PredictionShard{folder / name}.entries().size(), 5U);
  }
}

TEST(PredictionShard, APredictionThatIsThereTwiceIsAnError) {
  const TempFolder folder;
  write_shard(folder / "a", 0, 2, 5);
  EXPECT_EQ(
      error_of([&] {
        merge_shards({folder / "a", folder / "a"}, [](const PredictionKey&, std::string_view) {});
      }).kind(),
      ErrorKind::data);
}

TEST(Collect, GivesEachRankAllPredictionsInOrderInRoundsOfBoundedSize) {
  for (const int ranks : {1, 2, 3}) {
    const TempFolder folder;
    std::mutex mutex;
    run_threads(ranks, [&](Group& group) {
      const fs::path mine = folder / std::to_string(group.rank());
      {
        PredictionShardWriter writer{mine};
        for (int64_t i = group.rank(); i < 40; i += ranks) {
          writer.add({.index = i}, std::string(1'000'000, static_cast<char>('a' + i % 26)));
        }
        writer.close();
      }
      group.begin_section("outputs", 0);
      std::vector<int64_t> order;
      const auto before = group.counts().payload_rounds;
      collect_in_order(group, PredictionShard{mine},
                       [&](const PredictionKey& key, std::string_view bytes) {
                         order.push_back(key.index);
                         EXPECT_EQ(bytes.size(), 1'000'000U);
                         EXPECT_EQ(bytes.front(), 'a' + key.index % 26);
                       });
      const std::lock_guard lock{mutex};
      ASSERT_EQ(order.size(), 40U);
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
      if (ranks > 1) {
        EXPECT_GE(group.counts().payload_rounds - before, 5);
      }
    });
  }
}

}  // namespace
}  // namespace muster::test
