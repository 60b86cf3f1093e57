#include "src/track/event_file_internal.h"

#include <gtest/gtest.h>
#include <muster/base/files.h>

#include "src/track/events_internal.h"
#include "track/support.h"

namespace muster {
namespace {

TEST(EventFile, ComputesCastagnolisCrcByInstructionAndByTable) {
  EXPECT_EQ(track::crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(track::crc32c(""), 0U);
  for (size_t length = 0; length < 70; ++length) {
    std::string bytes;
    for (size_t i = 0; i < length; ++i) {
      bytes += static_cast<char>(i * 151 + length);
    }
    EXPECT_EQ(track::crc32c(bytes), track::crc32c_by_table(bytes)) << length;
  }
}

// Made with TensorBoard's own writer.
TEST(EventFile, FramesTheBytesOfTheRealWriter) {
  EXPECT_EQ(test::to_hex(track::frame_tf_record(track::version_event(1.0))),
            "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
  const std::vector<std::pair<std::string, double>> loss{{"loss", 0.5}};
  EXPECT_EQ(test::to_hex(track::frame_tf_record(track::scalars_event(2.0, 7, loss))),
            "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a");
}

TEST(EventFile, SortsAfterEveryFileThatIsThere) {
  const test::TempDir dir;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& path : test::files_below(dir.path())) {
      found.push_back(path.filename().string());
    }
    return found;
  };
  { const track::EventFile one{dir.path(), 1764500000.9}; }
  const std::string first = names().at(0);
  EXPECT_TRUE(first.starts_with("events.out.tfevents.1764500000.")) << first;
  { const track::EventFile two{dir.path(), 1764500000.9}; }
  ASSERT_EQ(names().size(), 2);
  EXPECT_EQ(names()[0], first);
  EXPECT_TRUE(names()[1].starts_with("events.out.tfevents.1764500001.")) << names()[1];
}

}  // namespace
}  // namespace muster
