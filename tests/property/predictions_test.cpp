#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"

#include <muster/base/files.h>

#include <gtest/gtest.h>

#include <string>

namespace muster::test {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int64_t most_bytes = 1'000'000'000;  // freed memory is kept from use for a while
#else
constexpr int64_t most_bytes = 300'000'000;
#endif

TEST(Predictions, AMillionOfAKilobytePassInOrderWithAtMost300MegabytesOnAnyRank) {
  const TempFolder folder;
  const std::string run = (folder / "run").string();
  const Outcome outcome =
      run_program(bin_dir() / "muster",
                  {"launch", "-n", "2", (bin_dir() / "test_property_predictions_program").string(),
                   "1000000", run});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const auto* rank : {"peak-0", "peak-1"}) {
    const int64_t peak = std::stoll(read_file(folder / "run" / rank));
    EXPECT_LT(peak, most_bytes) << rank;
    RecordProperty(rank, std::to_string(peak));
  }
}

}  // namespace
}  // namespace muster::test
