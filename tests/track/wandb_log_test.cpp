#include "src/track/wandb_log_internal.h"

#include "src/track/wandb_records_internal.h"
#include "track/support.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>

namespace muster {
namespace {

using test::to_hex;

// Made with the real protobuf library and W&B's own writer.
constexpr std::string_view golden_header =
    "1250b0571f00010801aa010d0a0b0a016d1206302e37302e30c20c0a0a086162636431323334";
constexpr std::string_view golden_history =
    "eefd859c3000010802121f0a0c0a046c6f7373820103302e350a0b0a055f737465708201013312020803c20c0a0a08"
    "6162636431323334";
constexpr std::string_view golden_exit = "52d959a31200010803920100c20c0a0a086162636431323334";

TEST(WandbLog, WritesTheBytesOfTheRealWriter) {
  const auto framed = [](const track::WandbRecord& record, int64_t number) {
    return to_hex(track::frame_wandb_record(track::serialize(record, number, "abcd1234"), 7));
  };
  EXPECT_EQ(framed(track::wandb_header("m"), 1), golden_header);
  EXPECT_EQ(framed(track::wandb_history({{"loss", "0.5"}, {"_step", "3"}}, 3), 2), golden_history);
  EXPECT_EQ(framed(track::wandb_exit(0, 0.5), 3), golden_exit);
}

TEST(WandbLog, KeepsAnEmptyStepMessageForStepZero) {
  EXPECT_EQ(to_hex(track::wandb_history({}, 0).body), "1200");
}

TEST(WandbLog, BeginsWithTheFileHeader) {
  const test::TempDir dir;
  { const track::WandbLog log{dir.path() / "run.wandb"}; }
  EXPECT_EQ(to_hex(read_file(dir.path() / "run.wandb")), "3a572642e1be00");
}

TEST(WandbLog, NeverOverwritesAFile) {
  const test::TempDir dir;
  write_file_atomically(dir.path() / "run.wandb", "mine");
  EXPECT_THROW(track::WandbLog{dir.path() / "run.wandb"}, Error);
  EXPECT_EQ(read_file(dir.path() / "run.wandb"), "mine");
}

/// Writes a first record after which `left` bytes of the block remain, then a second one.
class WandbBlockEnd : public testing::TestWithParam<size_t> {};

TEST_P(WandbBlockEnd, IsFilledSoThatTheNextRecordReadsBack) {
  const test::TempDir dir;
  const auto path = dir.path() / "run.wandb";
  const auto record = [](std::string_view text) {
    return track::serialize(track::wandb_media_file(text), 1, "id");
  };
  // The sizes of lengths in the message are the same for all paths of this order of magnitude.
  const size_t overhead = record(std::string(30000, 'a')).size() - 30000;
  const std::string first(32768 - 7 - 7 - overhead - GetParam(), 'a');
  track::WandbLog log{path};
  log.append(record(first));
  ASSERT_EQ(std::filesystem::file_size(path), 32768 - GetParam());
  log.append(record("second"));

  bool is_whole = false;
  const auto entries = test::read_wandb(path, &is_whole);
  EXPECT_TRUE(is_whole);
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].items.begin()->first, first);
  EXPECT_EQ(entries[1].items.begin()->first, "second");
}

INSTANTIATE_TEST_SUITE_P(WithBytesLeft, WandbBlockEnd, testing::Values(0, 1, 6, 7, 8, 9));

TEST(WandbLog, SplitsALongRecordOverBlocks) {
  const test::TempDir dir;
  const auto path = dir.path() / "run.wandb";
  track::WandbLog log{path};
  const std::string text(100000, 'x');
  log.append(track::serialize(track::wandb_media_file(text), 1, "id"));
  log.append(track::serialize(track::wandb_media_file("after"), 2, "id"));
  bool is_whole = false;
  const auto entries = test::read_wandb(path, &is_whole);
  EXPECT_TRUE(is_whole);
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].items.begin()->first, text);
  EXPECT_EQ(entries[1].items.begin()->first, "after");
}

TEST(WandbLog, ReadsBackUpToTheRecordThatIsTorn) {
  const test::TempDir dir;
  const auto path = dir.path() / "run.wandb";
  track::WandbLog log{path};
  for (int i = 0; i < 10; ++i) {
    log.append(track::serialize(track::wandb_media_file("file"), i + 1, "id"));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  bool is_whole = true;
  EXPECT_EQ(test::read_wandb(path, &is_whole).size(), 9);
  EXPECT_FALSE(is_whole);
}

}  // namespace
}  // namespace muster
