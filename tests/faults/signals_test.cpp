// Rows D of docs/faults.md: signals, and streams that nobody reads.

#include "faults/job.h"

#include "support/texts.h"

#include <muster/base/format.h>

#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;

// 24 steps an epoch on two ranks.
const Arguments long_epochs{"--data.samples",       "96", "--model.step_ms", "20",
                            "--trainer.max_epochs", "2"};

Arguments joined(Arguments one, const Arguments& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

std::vector<std::string> last_lines(const Job& job, int ranks) {
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) lines.push_back(job.lines(rank).back());
  return lines;
}

TEST_F(Faults, D36_SigtermToTheLauncherSavesAndTheTrainingGoesOnBitEqual) {
  const Scenario scenario{.options = long_epochs};
  Job job = start(scenario);
  ASSERT_TRUE(job.wait_for(0, "step 10"));
  job.send(job.pid(), SIGTERM);
  expect(job, {.exit_code = 143, .within_s = 25, .says = "training stopped after 1[0-9] steps"});
  const auto last = last_lines(job, 2);
  EXPECT_EQ(last[0], last[1]);
  const std::string resumed = resumed_model(scenario);
  EXPECT_TRUE(resumed == whole_model(scenario));
}

TEST_F(Faults, D37_SigtermToEveryProcessAtOnceSavesToo) {
  const Scenario scenario{.options = long_epochs};
  Job job = start(scenario);
  ASSERT_TRUE(job.wait_for(1, "step 10"));
  const auto pids = job.pids();
  EXPECT_EQ(pids.size(), 3U);
  for (const pid_t pid : pids) job.send(pid, SIGTERM);
  expect(job, {.exit_code = 143, .within_s = 25, .says = "training stopped after 1[0-9] steps"});
  EXPECT_EQ(checkpoints().size(), 1U);
}

TEST_F(Faults, D38_SigtermToOneRankStopsAllAfterTheSameStepAndIsNoCrash) {
  Job job = start({.ranks = 3, .options = long_epochs});
  ASSERT_TRUE(job.wait_for(1, "step 5"));
  job.send(job.pid_of(2), SIGTERM);
  // Rank 0 names the signal, though another had it.
  const Ended ended = expect(job, {.exit_code = 143,
                                   .within_s = 25,
                                   .says = "stopped after [0-9]+ steps: SIGTERM came; "
                                           "--ckpt_path last goes on from here\n"
                                           "muster: stopped by SIGTERM\n$"});
  EXPECT_FALSE(has(ended.err, "exited with code"));
  const auto last = last_lines(job, 3);
  EXPECT_EQ(last[0], last[2]);
  EXPECT_EQ(checkpoints().size(), 1U);
}

TEST_F(Faults, D39_SigtermInValidationStopsIt) {
  const Scenario scenario{.options =
                              joined(long_epochs, {"--data.val_samples", "400", "--model.val_ms",
                                                   "20", "--trainer.num_sanity_val_steps", "0"})};
  Job job = start(scenario);
  ASSERT_TRUE(job.wait_for(1, "val 11 of 2"));
  job.send(job.pid(), SIGTERM);
  // The whole of it takes 2 s.
  expect(job, {.exit_code = 143, .within_s = 1.5, .says = "stopped"});
  EXPECT_EQ(checkpoints().size(), 1U);
}

TEST_F(Faults, D39_SigtermToOneRankInValidationStopsAll) {
  Job job = start({.ranks = 3,
                   .options = joined(long_epochs, {"--data.val_samples", "3000", "--model.val_ms",
                                                   "20", "--trainer.num_sanity_val_steps", "0"})});
  ASSERT_TRUE(job.wait_for(2, "val 11 of 2"));
  job.send(job.pid_of(1), SIGTERM);
  // The whole of it takes 10 s.
  expect(job, {.exit_code = 143, .within_s = 3, .says = "muster: stopped by SIGTERM\n$"});
  EXPECT_EQ(checkpoints().size(), 1U);
}

TEST_F(Faults, D39_SigtermDuringASaveLetsItComplete) {
  Job job = start({.shim = "fsync:checkpoints:1+:slow", .options = long_epochs});
  ASSERT_TRUE(job.wait_for(0, "step 23"));
  std::this_thread::sleep_for(500ms);
  job.send(job.pid(), SIGTERM);
  expect(job, {.exit_code = 143, .within_s = 25, .says = "stopped"});
  EXPECT_GE(checkpoints().size(), 1U);
}

TEST_F(Faults, D39_SigtermBeforeTheFirstStepSavesAndStops) {
  Job job = start({.fault = "start:1:*:late", .options = long_epochs});
  ASSERT_TRUE(job.pid_of(1) > 0);
  std::this_thread::sleep_for(1s);
  job.send(job.pid(), SIGTERM);
  expect(job, {.exit_code = 143, .within_s = 25, .says = "stopped"});
}

TEST_F(Faults, D39_SigtermWhileRanksMeetEndsTheJob) {
  Job job = start({.fault = "main:1:*:hang", .options = long_epochs});
  ASSERT_TRUE(job.pid_of(1) > 0);
  std::this_thread::sleep_for(2s);
  for (const pid_t pid : job.pids()) {
    if (pid != job.pid()) job.send(pid, SIGTERM);
  }
  job.send(job.pid(), SIGTERM);
  std::this_thread::sleep_for(3s);
  EXPECT_LE(job.pids().size(), 2U);  // The rank that waited is gone.
  job.send(job.pid_of(1), SIGKILL);
  job.finish();
}

TEST_F(Faults, D40_AnInterruptStopsAndASecondKillsAtOnce) {
  Job first = start({.options = long_epochs});
  ASSERT_TRUE(first.wait_for(0, "step 5"));
  first.send(first.pid(), SIGINT);
  expect(first, {.exit_code = 130, .within_s = 25, .says = "stopped"});

  Job second = start({.fault = "step:*:5:hang", .options = long_epochs, .run = "second"});
  ASSERT_TRUE(second.wait_for(0, "step 5"));
  kill(second.pid(), SIGINT);
  std::this_thread::sleep_for(500ms);
  second.send(second.pid(), SIGINT);
  expect(second, {.exit_code = 130, .within_s = 1});
}

TEST_F(Faults, D41_Sigusr1ToTheLauncherSavesWithinAStepAndTheTrainingGoesOn) {
  Job job = start({.options = long_epochs});
  ASSERT_TRUE(job.wait_for(0, "step 5"));
  job.send(job.pid(), SIGUSR1);
  expect(job, {.exit_code = 0, .within_s = 30});
  const auto names = checkpoints();
  ASSERT_EQ(names.size(), 3U);
  EXPECT_TRUE(says(names[0] + names[1] + names[2], "epoch=0-step=([6-9]|1[0-9]).ckpt"));
}

TEST_F(Faults, D41_EachSigusr1Saves) {
  Job job = start({.ranks = 1, .options = joined(long_epochs, {"--model.step_ms", "50"})});
  ASSERT_TRUE(job.wait_for(0, "step 5"));
  job.send(job.pid(), SIGUSR1);
  ASSERT_TRUE(job.wait_for(0, "step 40"));
  job.send(job.pid(), SIGUSR1);
  expect(job, {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(checkpoints().size(), 4U);
}

TEST_F(Faults, D42_AKillThatComesSoonAfterSigtermLeavesThePreviousCheckpoint) {
  const Scenario scenario{.shim = "fsync:checkpoints:12+:slow", .options = long_epochs};
  Job job = start(scenario);
  ASSERT_TRUE(job.wait_for(0, "step 30"));
  job.send(job.pid(), SIGTERM);
  std::this_thread::sleep_for(1s);
  for (const pid_t pid : job.pids()) kill(pid, SIGKILL);
  expect(job, {.exit_code = 137, .within_s = 5});
  EXPECT_GE(checkpoints().size(), 1U);
  const std::string resumed = resumed_model(scenario);
  EXPECT_TRUE(resumed == whole_model(scenario));
  for (const auto& entry : std::filesystem::directory_iterator{run_dir() / "checkpoints"}) {
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
  }
}

TEST_F(Faults, D43_OutputThatNobodyReadsEndsNoTrainingAndShowsAtItsEnd) {
  const Arguments prints{"--model.print_lines", "200", "--trainer.max_epochs", "1"};
  for (const auto* script :
       {"\"$@\" | head -1 >/dev/null; exit ${PIPESTATUS[0]}", "\"$@\" >/dev/full"}) {
    for (const int ranks : {1, 2}) {
      const std::string run = format("{}-{}", script[5] == '|' ? "head" : "full", ranks);
      expect({.ranks = ranks, .options = prints, .script = script, .run = run},
             {.exit_code = 74, .within_s = 30, .says = "standard output"});
      EXPECT_EQ(checkpoints(run).size(), 1U) << script;
    }
  }
}

void expect_whole_lines(const std::string& text, int64_t lines) {
  std::istringstream stream{text};
  int64_t whole = 0;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("line of ")) continue;
    const size_t at = line.find("number ");
    ASSERT_NE(at, std::string::npos) << line;
    const int64_t number = std::stoll(line.substr(at + 7));
    ASSERT_EQ(line, format("line of {} number {} {}", line[8], number,
                           std::string(static_cast<size_t>(number * 37 % 300), 'x')));
    ++whole;
  }
  EXPECT_EQ(whole, lines);
}

TEST_F(Faults, D45_LinesOfSeveralRanksAreNotTorn) {
  const Ended ended = expect({.ranks = 3,
                              .options = {"--model.print_lines", "3000", "--trainer.max_steps", "1",
                                          "--trainer.enable_checkpointing", "false"},
                              .script = "\"$@\" | cat; exit ${PIPESTATUS[0]}"},
                             {.exit_code = 0, .within_s = 30});
  expect_whole_lines(ended.out, 9000);
}

TEST_F(FaultsSlow, D45_LinesOfEightRanksAreNotTorn) {
  const Ended ended = expect({.ranks = 8,
                              .options = {"--model.print_lines", "1250", "--trainer.max_steps", "1",
                                          "--trainer.enable_checkpointing", "false"},
                              .script = "\"$@\" | cat; exit ${PIPESTATUS[0]}"},
                             {.exit_code = 0, .within_s = 120});
  expect_whole_lines(ended.out, 10000);
}

}  // namespace
}  // namespace muster::test
