#include "src/track/append_file_internal.h"

#include <gtest/gtest.h>

#include <cerrno>

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

}  // namespace
}  // namespace muster
