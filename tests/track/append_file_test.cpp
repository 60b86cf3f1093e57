#include "src/track/append_file_internal.h"

#include <gtest/gtest.h>

#include <muster/base/files.h>

#include <cerrno>
#include <filesystem>

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

namespace muster {
namespace {

using test::error_of;

TEST(AppendFile, SaysWhyAFileTakesNothing) {
  auto file = track::AppendFile::open("/dev/full");
  const Error full = error_of([&] { file.append("row\n"); });
  EXPECT_EQ(full.kind(), ErrorKind::io);
  EXPECT_TRUE(test::contains(full.what(), "cannot write 4 bytes to /dev/full: No space left"));
  errno = 0;
  const Error unsynced = error_of([&] { file.sync(); });
  EXPECT_EQ(unsynced.kind(), ErrorKind::io);
  EXPECT_STREQ(unsynced.what(), "cannot bring /dev/full to the disk: Invalid argument");
}

TEST(AppendFile, FollowsNoLink) {
  const test::TempFolder folder;
  write_file_atomically(folder / "victim", "as it was");
  std::filesystem::create_symlink("victim", folder / "link");
  std::filesystem::create_symlink("nothing", folder / "dangling");
  for (const auto* name : {"link", "dangling"}) {
    for (const auto open : {track::AppendFile::open, track::AppendFile::create}) {
      const Error error = error_of([&] { open(folder / name); });
      EXPECT_EQ(error.kind(), ErrorKind::output);
      EXPECT_TRUE(test::contains(error.what(), (folder / name).string() + ": it is a link"));
    }
  }
  EXPECT_EQ(read_file(folder / "victim"), "as it was");
}

}  // namespace
}  // namespace muster
