// A collective that cannot be right is an error on every rank, at once, whoever has started the
// ranks: the launcher or torchrun.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

struct Misuse {
  std::string command{};
  std::string how{};
  std::string where{};
  std::string said{};  ///< in the message
};

std::ostream& operator<<(std::ostream& out, const Misuse& misuse) {
  return out << misuse.command << ' ' << misuse.how << ' ' << misuse.where;
}

const std::vector<Misuse> misuses{
    {"validate", "rank_zero", "start", "before the loaders, call 1: all_gather at "},
    {"validate", "rank_zero", "batch", "loader 0, round 0, call 1: all_gather at "},
    {"validate", "rank_zero", "end", "after the loaders, call 1: all_gather at "},
    {"predict", "rank_zero", "start", "before the loaders, call 1: all_gather at "},
    {"predict", "rank_zero", "batch", "loader 0, round 0, call 1: all_gather at "},
    {"predict", "rank_zero", "end", "after the loaders, call 1: all_gather at "},
    {"validate", "left_out", "batch", "loader 0, round 0, call 1: all_gather at "},
    {"predict", "left_out", "end", "after the loaders, call 1: all_gather at "},
    {"validate", "operation", "batch", "different operations"},
    {"predict", "root", "batch", "different operations"},
    {"validate", "reduction", "end", "different operations"},
    {"validate", "count", "batch", "different operations"},
    {"predict", "line", "start", "different lines"},
};

constexpr int ranks = 2;

class MisusedCollectives : public ::testing::TestWithParam<Misuse> {
 protected:
  [[nodiscard]] std::vector<std::string> program(const Misuse& misuse) const {
    return {(bin_dir() / "test_dist_failing_program").string(),
            misuse.command,
            "--model.how",
            misuse.how,
            "--model.where",
            misuse.where,
            "--data.samples",
            "5",
            "--run_dir",
            run().string()};
  }
  [[nodiscard]] Outcome by_launcher() const {
    std::vector<std::string> arguments = program(GetParam());
    arguments.insert(arguments.begin(), {"launch", "-n", std::to_string(ranks)});
    return run_program(bin_dir() / "muster", arguments);
  }
  [[nodiscard]] Outcome by_torchrun() const {
    std::vector<std::string> arguments = program(GetParam());
    arguments.insert(
        arguments.begin(),
        {"--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
         "--local-addr=127.0.0.1", "--nproc-per-node=" + std::to_string(ranks), "--no-python"});
    return run_program(torchrun, arguments);
  }
  const fs::path torchrun = tests_dir().parent_path() / ".venv/bin/torchrun";
  [[nodiscard]] fs::path run() const { return folder_ / "run"; }
  /// What is left by the rank: "" where its launcher ended it before it could tell.
  [[nodiscard]] std::string error_file(int rank) const {
    return read_file_if_there(run() / "errors" / ("rank-" + std::to_string(rank) + ".json"))
        .value_or("");
  }
  /// Seconds from the last call of the last rank to the error of `rank`.
  [[nodiscard]] double seconds_to_error(int rank) const {
    int64_t last = 0;
    for (int r = 0; r < ranks; ++r) {
      const auto at = read_file_if_there(run() / ("last-call-" + std::to_string(r)));
      last = std::max<int64_t>(last, at ? std::stoll(*at) : 0);
    }
    const auto found = captures(error_file(rank), "\"monotonic_ns\": ([0-9]+)");
    if (last == 0 || found.empty()) {
      return 1e9;
    }
    return static_cast<double>(std::stoll(found[0]) - last) / 1e9;
  }
  void expect_error(int rank) const {
    const std::string text = error_file(rank);
    EXPECT_TRUE(has(text, "\"code\": 70"));
    EXPECT_TRUE(has(text, "the ranks disagree on the next collective"));
    EXPECT_TRUE(has(text, GetParam().said));
    // Each rank's place and source line.
    for (int r = 0; r < ranks; ++r) {
      EXPECT_TRUE(says(text, "rank " + std::to_string(r) + ": " + GetParam().command +
                                 " epoch 0, [^\\]*call [0-9]+: [a-z_]+[^\\]* at "
                                 "[a-z_/]+\\.(cpp|h):[0-9]+"));
    }
    EXPECT_LT(seconds_to_error(rank), 5.0);
  }

 private:
  TempFolder folder_;
};

TEST_P(MisusedCollectives, AreTheSameErrorOnEveryRankWithinFiveSeconds) {
  const Outcome outcome = by_launcher();
  EXPECT_EQ(outcome.exit_code, 70) << outcome.err;
  EXPECT_TRUE(has(outcome.err, GetParam().said));
  EXPECT_TRUE(has(outcome.err, "tests/dist/failing_program.cpp:"));
  for (int rank = 0; rank < ranks; ++rank) expect_error(rank);
}

TEST_P(MisusedCollectives, AreTheSameErrorUnderTorchrun) {
  if (!fs::exists(torchrun)) GTEST_SKIP() << "there is no torchrun in .venv";
  const Outcome outcome = by_torchrun();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  int told = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    // torchrun ends the others by SIGTERM as soon as it has seen one fail.
    const bool ended =
        error_file(rank).empty() && outcome.err.find("exitcode  : -15") != std::string::npos;
    if (ended) continue;
    expect_error(rank);
    EXPECT_TRUE(has(outcome.err, "muster: error: rank " + std::to_string(rank) +
                                     ": the ranks disagree on the next collective"));
    ++told;
  }
  EXPECT_GE(told, 1);
  EXPECT_TRUE(has(outcome.err, "exitcode  : 70"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, MisusedCollectives, ::testing::ValuesIn(misuses),
                         [](const auto& tested) {
                           return tested.param.command + "_" + tested.param.how + "_" +
                                  tested.param.where;
                         });

using ARankThatThrows = MisusedCollectives;

TEST_P(ARankThatThrows, EndsTheOthersWaitInACollective) {
  const Outcome outcome = by_launcher();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.err, GetParam().said));
  EXPECT_TRUE(has(error_file(1), "\"code\": 1"));
  EXPECT_TRUE(has(error_file(0), "\"code\": 75"));
  for (int rank = 0; rank < ranks; ++rank) EXPECT_LT(seconds_to_error(rank), 5.0);
}

TEST_P(ARankThatThrows, EndsTheOthersWaitUnderTorchrunToo) {
  if (!fs::exists(torchrun)) GTEST_SKIP() << "there is no torchrun in .venv";
  const Outcome outcome = by_torchrun();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "muster: error: rank 1: " + GetParam().said));
  EXPECT_TRUE(has(error_file(1), "\"code\": 1"));
  EXPECT_LT(seconds_to_error(1), 5.0);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ARankThatThrows,
    ::testing::Values(Misuse{"validate", "throws", "batch", "planned failure of the last rank"},
                      Misuse{"predict", "throws", "end", "planned failure of the last rank"}),
    [](const auto& tested) { return tested.param.command + "_" + tested.param.where; });

}  // namespace
}  // namespace muster::test
