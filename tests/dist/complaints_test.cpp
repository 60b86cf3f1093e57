// Complaints that need real processes: docs/complaints.md has the list.

#include "dist/processes.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> fit_program(const fs::path& run, int ranks,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> all{"fit", "--run_dir", run.string(), "--devices",
                               std::to_string(ranks)};
  for (const auto* option : {"logger", "enable_checkpointing", "enable_progress_bar"}) {
    all.insert(all.end(), {std::string{"--trainer."} + option, "false"});
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Complaints, I27MetricsAndGathersTravelOnAGroupOfTheirOwnBesideTheGradients) {
  const TempFolder folder;
  for (const int ranks : {2, 3}) {
    const Outcome outcome =
        run_program(bin_dir() / "test_dist_fit_program",
                    fit_program(folder / "run", ranks,
                                {"--model.trouble", "gather", "--trainer.max_epochs", "2"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(has(read_file(folder / "run/results.json"), "\"val/loss\": "));
  }
}

/// The process of rank `rank` that works on `folder`; 0 while there is none.
pid_t process_of_rank(int rank, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator{"/proc"}) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto command = read_file_if_there(entry.path() / "cmdline");
    if (!command || command->find(folder.string()) == std::string::npos) continue;
    std::string variables = read_file_if_there(entry.path() / "environ").value_or("");
    variables.insert(variables.begin(), '\0');
    const std::string wanted = '\0' + ("RANK=" + std::to_string(rank)) + '\0';
    if (variables.find(wanted) != std::string::npos) return std::stoi(pid);
  }
  return 0;
}

TEST(Complaints, I31ASignalToAnyOneRankStopsAllAtOneStepWithACheckpoint) {
  for (int rank = 0; rank < 3; ++rank) {
    const TempFolder folder;
    const fs::path run = folder / "run";
    Child child{{(bin_dir() / "minimal").string(), "fit", "--devices", "3", "--run_dir",
                 run.string(), "--trainer.max_epochs", "100000", "--trainer.limit_train_batches",
                 "30", "--trainer.logger", "false"},
                {}};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!fs::exists(run / "checkpoints/last.ckpt") && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    const pid_t process = process_of_rank(rank, folder.path());
    ASSERT_GT(process, 0);
    ASSERT_EQ(kill(process, SIGTERM), 0);
    const Ended ended = child.wait(std::chrono::seconds{20});
    EXPECT_EQ(ended.exit_code, 143) << ended.output;
    EXPECT_FALSE(has(ended.output, "lost"));
    const auto last = checkpoint_moment(run / "checkpoints/last.ckpt");
    ASSERT_TRUE(last.has_value());
    EXPECT_TRUE(
        has(read_file(run / "results.json"), "\"steps\": " + std::to_string(last->global_step)));
    EXPECT_EQ(process_of_rank(rank, folder.path()), 0);
  }
}

TEST(Complaints, I32ARankThatThrowsEndsAllRanksWithItsMessageWithinTenSeconds) {
  for (int rank = 0; rank < 3; ++rank) {
    const TempFolder folder;
    const Outcome outcome = run_program(
        bin_dir() / "test_dist_fit_program",
        fit_program(folder / "run", 3,
                    {"--model.trouble", "exception", "--model.at", std::to_string(3 + rank)}));
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "rank " + std::to_string(rank) + " (pid"));
    EXPECT_TRUE(has(outcome.err, "the model does not like this batch"));
    EXPECT_LT(outcome.seconds, 10);
    for (int other = 0; other < 3; ++other) {
      EXPECT_EQ(process_of_rank(other, folder.path()), 0) << "rank " << other << " is still there";
    }
  }
}

}  // namespace
}  // namespace muster::test
