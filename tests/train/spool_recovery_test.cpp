#include "src/train/image_spool_internal.h"
#include "src/train/spool_recovery_internal.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

LoggedImage named(const std::string& key, int64_t index) {
  LoggedImage image;
  image.record = {.key = key, .step = 7, .index = index, .caption = "a \"caption\""};
  return image;
}

TEST(SpoolRecovery, WritesNothingThroughALinkInTheSpool) {
  const TempFolder run;
  write_file_atomically(run / "victim", "as it was");
  fs::create_directories(run / "spool/rank-1");
  fs::create_symlink("../../victim", run / "spool/rank-1/images.txt");
  ImageSpool spool{run / "spool" / "rank-1", 1};
  spool.add(at::full({2, 2}, 0.5), named("eval", 0));
  Ledger ledger;
  spool.drain(ledger);
  EXPECT_EQ(read_file(run / "victim"), "as it was");
}

TEST(SpoolRecovery, KeepsTheImagesThatADeadRunHasNotLoggedAndSaysWhatTheyAre) {
  const TempFolder run;
  {
    ImageSpool spool{run / "spool" / "rank-1", 2};
    for (int64_t i = 0; i < 3; ++i) spool.add(at::full({2, 2}, 0.5), named("eval", i));
    Ledger ledger;
    spool.drain(ledger);
  }                                               // nothing was shipped
  fs::remove(run / "spool/rank-1/00000001.png");  // this one was
  EXPECT_EQ(recover_spool(run.path()), 2);
  const fs::path folder = run / "recovered/1/rank-1";
  EXPECT_TRUE(fs::exists(folder / "00000000.png"));
  EXPECT_TRUE(fs::exists(folder / "00000002.png"));
  const std::string records = read_file(folder / "images.txt");
  EXPECT_TRUE(has(records, "00000002.png {\"key\": \"eval\", \"step\": 7, \"index\": 2,"));
  EXPECT_TRUE(has(records, "a \\\"caption\\\""));
  EXPECT_EQ(records.find("00000001.png"), std::string::npos);
  EXPECT_FALSE(fs::exists(run / "spool/rank-1/00000002.png"));
  EXPECT_EQ(recover_spool(run.path()), 0);
}

TEST(SpoolRecovery, OfNothingMakesNoFolder) {
  const TempFolder run;
  EXPECT_EQ(recover_spool(run.path()), 0);
  write_file_atomically(run / "spool/rank-0/images.txt", "../../x {}\n\n00000000.png {\"key\"");
  EXPECT_EQ(recover_spool(run.path()), 0);
  EXPECT_FALSE(fs::exists(run / "recovered"));
}

}  // namespace
}  // namespace muster::test
