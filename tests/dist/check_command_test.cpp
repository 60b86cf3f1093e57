// `muster check` on real processes.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>

#include <gtest/gtest.h>

#include <filesystem>

namespace muster::test {
namespace {

Outcome check(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"check", (bin_dir() / program).string()});
  return run_program(bin_dir() / "muster", arguments);
}

/// Of check_program.cpp, at 1 and 2 ranks.
Outcome check_fault(const std::string& command, const std::string& fault) {
  return check("test_dist_check_program",
               {command, "--world", "1,2", "--trainer.logger", "false", "--model.fault", fault});
}

void expect_difference(const std::string& command, const std::string& fault,
                       const std::string& first) {
  const Outcome outcome = check_fault(command, fault);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "1 rank and 2 ranks differ. The first difference is\n  " + first));
  EXPECT_TRUE(has(outcome.out, "\nNothing in environment.json differs"));
}

TEST(CheckCommand, FindsTheExamplesEqual) {
  const Outcome images = check("log_images", {"predict", "--world", "1,2,3"});
  EXPECT_EQ(images.exit_code, 0) << images.err;
  EXPECT_EQ(images.out, "equal at 1, 2 and 3 ranks: 1 file, 0 metrics, 4 samples, 8 images\n");
  EXPECT_TRUE(matches(images.err,
                      "muster check: 1 rank ... [0-9.]+ s\nmuster check: 2 ranks ... [0-9.]+ s\n"
                      "muster check: 3 ranks ... [0-9.]+ s\n"));
  const Outcome matting = check("matting", {"validate", "--trainer.limit_val_batches", "3"});
  EXPECT_EQ(matting.exit_code, 0) << matting.err;
  EXPECT_TRUE(matches(matting.out,
                      "equal at 1, 2 and 3 ranks: 3 files, 16 metrics, 3 samples, "
                      "[0-9]+ images\n"));
  const Outcome mattes = check("matting", {"predict", "--trainer.limit_predict_batches", "2"});
  EXPECT_EQ(mattes.exit_code, 0) << mattes.err;
  EXPECT_TRUE(matches(mattes.out,
                      "equal at 1, 2 and 3 ranks: [3-9] files, [0-9]+ metrics, 2 "
                      "samples, [0-9]+ images\n"));
}

TEST(CheckCommand, SaysWhyItCanMakeNoFolder) {
  const Outcome outcome =
      run_program(bin_dir() / "muster", {"check", "log_images", "predict"}, {"TMPDIR=/proc"});
  EXPECT_EQ(outcome.exit_code, 73);
  EXPECT_TRUE(matches(outcome.err,
                      "muster: error: cannot make a folder in /proc: No such file or "
                      "directory\n"));
}

TEST(CheckCommand, NamesAMetricWithBothValuesAndThatTheEnvironmentIsTheSame) {
  expect_difference(
      "validate", "metric",
      "metric score of validate\n    1 rank   2.5\n    2 ranks  2.5833333333333335\n");
}

TEST(CheckCommand, NamesACellByTableSampleNameAndColumn) {
  const Outcome outcome = check_fault("validate", "cell");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "  metric val/score of validate\n    1 rank   2.5\n"));
  EXPECT_TRUE(has(outcome.out,
                  "  tables/validate-val.csv, sample 2 (sample-c), column score\n    1 rank   2\n"
                  "    2 ranks  2.25\n    and 1 more like it\n"));
}

TEST(CheckCommand, NamesTheSampleThatIsMissing) {
  EXPECT_TRUE(has(check_fault("validate", "row").out,
                  "  tables/validate-val.csv, sample 2 (sample-c)\n    1 rank   there\n"
                  "    2 ranks  missing\n    and 1 more like it\n"));
  expect_difference("predict", "sample", "samples of predict\n    1 rank   6\n    2 ranks  5\n");
}

TEST(CheckCommand, NamesAnImageByItsRecord) {
  const Outcome outcome = check_fault("validate", "image");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.out,
                  "  image shown \"sample-c\" of sample 2, step 0, of validate\n"
                  "    1 rank   6 x 4, sha256 "));
}

TEST(CheckCommand, NamesAPredictionFileThatDiffersOrThatOnlyOneHas) {
  expect_difference("predict", "prediction",
                    "predictions/000002-sample-c.png (sample 2) from byte ");
  const Outcome lost = check_fault("predict", "lost");
  EXPECT_TRUE(has(lost.out, "  predictions/000002-sample-c.png (sample 2)\n    1 rank   "));
  EXPECT_TRUE(has(lost.out, " bytes\n    2 ranks  missing\n    and 1 more like it\n"));
  expect_difference("predict", "extra",
                    "predictions/000002-more.png (sample 2)\n    1 rank   missing\n    2 ranks  ");
}

TEST(CheckCommand, NamesWhatDiffersInTheEnvironment) {
  const Outcome outcome = check_fault("validate", "threads");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.out,
                  "What may be the reason, from environment.json:\n  threads\n"
                  "    1 rank   1\n    2 ranks  2\n"));
}

TEST(CheckCommand, PassesTheExitCodeOnAndSaysAtWhichNumberOfRanks) {
  const Outcome outcome = check_fault("validate", "fails");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(has(outcome.err, " at 2 ranks ended with exit code 1, and said at last\n"));
  EXPECT_TRUE(has(outcome.err, "this rank does not like its batch"));
  const Outcome usage = check("matting", {"validate", "--model.radious", "2"});
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_TRUE(has(usage.err, " at 1 rank ended with exit code 2, "));
  EXPECT_TRUE(has(usage.err, "did you mean model.radius?"));
}

TEST(CheckCommand, LeavesTheProgramsRunFolderAloneAndKeepsItsOwnWhereAsked) {
  const TempFolder folder;
  const std::string own = (folder / "own").string();
  const std::string keep = (folder / "keep").string();
  const std::vector<std::string> arguments{"predict", "--run_dir",   own,      "--devices",
                                           "3",       "--world=2,1", "--keep", keep};
  const Outcome outcome = check("log_images", arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(own));
  EXPECT_EQ(read_file(folder / "keep" / "ranks-1" / "results.json"),
            read_file(folder / "keep" / "ranks-2" / "results.json"));
  EXPECT_TRUE(
      has(read_file(folder / "keep" / "ranks-2" / "environment.json"), "\"world_size\": 2"));
  const Outcome again = check("log_images", arguments);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(has(again.err, "name a new folder"));
}

TEST(CheckCommand, RefusesWhatIsNoMusterProgram) {
  const Outcome other = run_program(bin_dir() / "muster", {"check", "true", "validate"});
  EXPECT_EQ(other.exit_code, 65);
  EXPECT_TRUE(has(other.err, "true at 1 rank has left no results.json"));
  EXPECT_EQ(run_program(bin_dir() / "muster", {"check", "no-such-program", "test"}).exit_code, 73);
}

}  // namespace
}  // namespace muster::test
