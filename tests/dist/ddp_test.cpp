#include "dist/processes.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/paths.h"
#include "support/texts.h"

namespace muster::test {
namespace {

/// Without torch's warning, on rank 0, that an early step used all parameters.
std::vector<Ended> run_ddp(const std::string& scenario, int size) {
  auto ranks = run_ranks({(bin_dir() / "test_dist_ddp_program").string(), scenario}, size);
  for (auto& rank : ranks) {
    std::istringstream lines{std::exchange(rank.output, "")};
    for (std::string line; std::getline(lines, line);) {
      if (!says(line, "^\\[W[0-9].*find_unused_parameters")) rank.output += line + "\n";
    }
  }
  return ranks;
}

/// Every rank ends with `code` and writes the same.
void expect_alike(const std::vector<Ended>& ranks, int code) {
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank.exit_code, code) << rank.output;
    EXPECT_EQ(rank.output, ranks[0].output);
  }
}

TEST(DdpOnProcesses, TrainsAsOneProcessWithGradientsEqualToTheBit) {
  for (const int size : {2, 3}) {
    const auto ranks = run_ddp("train", size);
    expect_alike(ranks, 0);
    EXPECT_NE(ranks[0].output.find("float32 accumulate 2 unused 1"), std::string::npos);
  }
}

TEST(DdpOnProcesses, TakesRankZerosValuesInEveryType) { expect_alike(run_ddp("values", 3), 0); }

TEST(DdpOnProcesses, EveryRankNamesTheParameterThatDiffers) {
  const auto ranks = run_ddp("differs", 3);
  expect_alike(ranks, 2);
  EXPECT_NE(ranks[0].output.find("rank 1 has parameter 'b.weight': float32[1, 4]"),
            std::string::npos)
      << ranks[0].output;
}

TEST(DdpOnProcesses, EveryRankNamesTheParameterThatALossLeavesOut) {
  const auto ranks = run_ddp("unused", 2);
  expect_alike(ranks, 1);
  EXPECT_NE(ranks[0].output.find("on rank 1 'rare.weight'. "), std::string::npos)
      << ranks[0].output;
}

TEST(DdpOnProcesses, AKilledRankIsSeenByTheOthersInTheSameStep) {
  const auto ranks = run_ddp("killed", 2);
  EXPECT_EQ(ranks[1].exit_code, 128 + 9);
  EXPECT_EQ(ranks[0].exit_code, 75) << ranks[0].output;
}

}  // namespace
}  // namespace muster::test
