// What a user sees when a rank fails: one message with where it was, in time, and its exit code.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>

#include <gtest/gtest.h>

namespace muster::test {
namespace {

class Failures : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] Outcome fail_by(const std::string& how) const {
    return run_program(bin_dir() / "test_dist_failing_program",
                       {"validate", "--devices", GetParam(), "--model.how", how, "--run_dir",
                        (folder_ / "run").string()});
  }
  /// The error file of the last rank.
  [[nodiscard]] std::string error_file() const {
    const int last = std::stoi(GetParam()) - 1;
    return read_file(folder_ / "run/errors" / ("rank-" + std::to_string(last) + ".json"));
  }
  [[nodiscard]] std::string batch() const {
    return std::string{GetParam()} == "1" ? "batch 2" : "batch 3";
  }

 private:
  TempFolder folder_;
};

TEST_P(Failures, AHookThatThrowsIsNamedWithItsPlaceInTheRun) {
  const Outcome outcome = fail_by("hook");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.err, "planned failure of " + batch()));
  EXPECT_TRUE(has(outcome.err, "during validate, epoch 0, loader 0, " + batch()));
  EXPECT_TRUE(has(error_file(), "\"phase\": \"validate, epoch 0, loader 0, " + batch() + "\""));
}

TEST_P(Failures, AnErrorOfTorchIsToldWithoutItsStack) {
  const Outcome outcome = fail_by("torch");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.err, "must match the size of tensor"));
  EXPECT_FALSE(has(outcome.err, "frame #"));
  EXPECT_FALSE(has(error_file(), "frame #"));
}

TEST_P(Failures, DataThatIsStillBeingLoadedHoldsNobodyUp) {
  const Outcome outcome = fail_by("slow_data");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.err, "planned failure of " + batch()));
  EXPECT_LT(outcome.seconds, 20);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Failures, ::testing::Values("1", "2"));

using FailuresOfTwo = Failures;
INSTANTIATE_TEST_SUITE_P(Ranks, FailuresOfTwo, ::testing::Values("2"));

TEST_P(FailuresOfTwo, RanksMeetOnce) {
  const Outcome outcome = fail_by("second_trainer");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "have met already"));
}

}  // namespace
}  // namespace muster::test
