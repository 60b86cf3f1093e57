// Evaluations drawn at random: a run folder has the same files at every number of ranks.

#include "support/paths.h"
#include "support/program.h"
#include "support/random_run.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::pair<std::string, std::string>>;

Files files_of_run(const fs::path& folder) {
  return files_of(folder, {"results.json", "tables", "predictions"});
}

/// The first file that differs, with both contents; "" where none does.
std::string difference(const Files& one, const Files& several) {
  for (size_t i = 0; i < std::max(one.size(), several.size()); ++i) {
    const Files::value_type none{"no file", ""};
    const auto& left = i < one.size() ? one[i] : none;
    const auto& right = i < several.size() ? several[i] : none;
    if (left != right) {
      return left.first + " against " + right.first + ":\n" + left.second + "\n" + right.second;
    }
  }
  return "";
}

/// Where the run of a draw on its ranks differs from that on one; an error counts as a difference.
/// `planted` tells whether the fault was there.
std::string check_draw(uint64_t seed, Fault fault = Fault::none, bool* planted = nullptr) {
  const TempFolder folder;
  try {
    run_draw(seed, fault, (folder / "one").string(), Group::self());
    std::atomic<bool> any = false;
    run_threads(ranks_of_draw(seed), [&](Group& group) {
      if (run_draw(seed, fault, (folder / "several").string(), group)) any = true;
    });
    if (planted != nullptr) *planted = any;
    return difference(files_of_run(folder / "one"), files_of_run(folder / "several"));
  } catch (const std::exception& error) {
    if (planted != nullptr) *planted = true;
    return error.what();
  }
}

/// Fifty draws each, so that they run side by side.
class FiftyRandomRuns : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FiftyRandomRuns, HaveTheSameFilesOnSeveralThreadsAsOnOne) {
  for (uint64_t seed = GetParam(); seed < GetParam() + 50; ++seed) {
    const std::string text = check_draw(seed);
    ASSERT_EQ(text, "") << "draw " << seed << " on " << ranks_of_draw(seed) << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Draws, FiftyRandomRuns, ::testing::Range(uint64_t{0}, uint64_t{500}, 50));

TEST(RandomRuns, HaveTheSameFilesOnProcesses) {
  const auto program = bin_dir() / "test_property_random_run_program";
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    const TempFolder folder;
    run_draw(seed, Fault::none, (folder / "one").string(), Group::self());
    const int ranks = 2 + static_cast<int>(seed % 3);
    const Outcome outcome =
        run_program(bin_dir() / "muster", {"launch", "-n", std::to_string(ranks), program.string(),
                                           std::to_string(seed), (folder / "several").string()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ASSERT_EQ(difference(files_of_run(folder / "one"), files_of_run(folder / "several")), "")
        << "draw " << seed << " on " << ranks << " ranks";
  }
}

class PlantedFault : public ::testing::TestWithParam<Fault> {};

TEST_P(PlantedFault, ShowsInEveryDrawThatHasAPlaceForIt) {
  int shown = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    bool planted = false;
    const std::string text = check_draw(seed, GetParam(), &planted);
    if (!text.empty()) {
      EXPECT_TRUE(planted) << "draw " << seed << ": " << text;
      ++shown;
    } else if (GetParam() != Fault::mean_of_means) {  // right where all batches are of one size
      EXPECT_FALSE(planted) << "draw " << seed;
    }
  }
  EXPECT_GE(shown, 10);
}

std::string name_of(const testing::TestParamInfo<Fault>& tested) {
  switch (tested.param) {
    case Fault::repeated_sample:
      return "RepeatedSample";
    case Fault::dropped_sample:
      return "DroppedSample";
    case Fault::swapped_images:
      return "SwappedImages";
    case Fault::mean_of_means:
      return "MeanOfMeans";
    case Fault::none:
      break;
  }
  return "None";
}

INSTANTIATE_TEST_SUITE_P(Kinds, PlantedFault,
                         ::testing::Values(Fault::repeated_sample, Fault::dropped_sample,
                                           Fault::swapped_images, Fault::mean_of_means),
                         name_of);

}  // namespace
}  // namespace muster::test
