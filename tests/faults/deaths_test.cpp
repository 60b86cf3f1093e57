// Rows A of docs/faults.md: processes that end, hang, or never start.

#include "faults/job.h"

#include "support/paths.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/proc/launch.h>

#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

namespace muster::test {
namespace {

const Arguments short_steps{"--model.step_ms", "20"};

TEST_F(Faults, A01_ARankKilledInAStepIsNamedWithItsPlace) {
  expect({.ranks = 3, .fault = "step:1:5:kill"},
         {.exit_code = 137,
          .says = "^rank 1 \\(pid [0-9]+\\) killed by SIGKILL\n.*possibly out of memory"});
}

TEST_F(Faults, A01_TheCheckpointBeforeIsWholeAndTheTrainingGoesOnFromIt) {
  const Scenario scenario{.fault = "step:1:15:kill", .options = {"--trainer.max_epochs", "3"}};
  expect(scenario, {.exit_code = 137, .says = "last seen during fit, epoch 2, step 15"});
  EXPECT_EQ(checkpoints().size(), 2U);
  const std::string resumed = resumed_model(scenario);
  EXPECT_TRUE(resumed == whole_model(scenario));
}

TEST_F(Faults, A02_ARankThatExitsWithZeroBeforeTheEndIsAFailure) {
  for (const auto* action : {"exit0", "quits"}) {
    expect({.fault = format("step:1:5:{}", action), .run = action},
           {.exit_code = 70, .says = "rank 1 \\(pid [0-9]+\\) exited with 0 before the run ended"});
  }
}

TEST_F(Faults, A03_AHookThatThrowsIsTheRootAndSurvivorsAreALine) {
  const Ended ended = expect({.ranks = 3, .fault = "step:1:5:throw"},
                             {.exit_code = 1,
                              .says = "^rank 1 \\(pid [0-9]+\\) exited with code 1\n"
                                      "  the planned failure\n"
                                      "  during fit, epoch 1, step 5, batch [0-9]+\n"
                                      "  error file [^\n]*rank-1.json\n"
                                      "rank 0: peer lost\nrank 2: peer lost\n$"});
  EXPECT_TRUE(has(error_file(1), "the planned failure"));
}

TEST_F(Faults, A04_AThrowInBackwardWaitsForNoCollectiveThatIsUnderWay) {
  expect({.fault = "backward:1:3:throw",
          .options = {"--model.large", "true", "--trainer.timeout", "1800"}},
         {.exit_code = 1, .says = "the planned failure"});
}

TEST_F(Faults, A05_ACrashIsNamedBySignalAndItsStackIsInTheErrorFile) {
  expect({.fault = "step:1:5:segv"}, {.exit_code = 139, .says = "rank 1 .*killed by SIGSEGV"});
  EXPECT_TRUE(has(error_file(1), "\"message\": \"killed by SIGSEGV\""));
  EXPECT_TRUE(says(error_file(1), "\"stack\": \".*fault_program"));
}

TEST_F(Faults, A05_AnExceptionOfAThreadEndsTheJobWithItsText) {
  expect(
      {.fault = "step:1:5:terminate"},
      {.exit_code = 134, .says = "rank 1 .*killed by SIGABRT\n  uncaught exception: on a thread"});
}

TEST_F(Faults, A07_AStoppedRankIsNamedWithItsLastStepAndKilled) {
  expect(
      {.ranks = 3, .fault = "step:1:5:stop", .options = {"--trainer.timeout", "5"}},
      {.exit_code = 75,
       .within_s = 10,
       .says = "^rank 1 \\(pid [0-9]+\\) hung: [^\n]*\n  last seen during fit, epoch 1, step 5"});
}

TEST_F(Faults, A07_ARankWhoseDataHangIsNamed) {
  expect({.fault = "load:20:*:hang,load:*:20:hang", .options = {"--trainer.timeout", "5"}},
         {.exit_code = 75, .within_s = 10, .says = "^rank [01] \\(pid [0-9]+\\) hung: "});
}

TEST_F(Faults, A08_RankZeroKilledIsNamedToo) {
  expect({.ranks = 3, .fault = "step:0:5:kill"},
         {.exit_code = 137, .says = "^rank 0 \\(pid [0-9]+\\) killed by SIGKILL"});
}

TEST_F(Faults, A09_RanksEndWhenTheLauncherIsKilled) {
  Job job = start({.ranks = 3, .fault = "step:1:9:deaf", .options = short_steps});
  ASSERT_TRUE(job.wait_for(0, "step 3"));
  job.send(job.pid(), SIGKILL);
  expect(job, {.exit_code = 137});
}

TEST_F(Faults, A10_ARankThatIgnoresSigtermIsKilledAfterTheGraceAndNamed) {
  expect({.ranks = 3, .fault = "step:1:5:deaf,step:2:5:throw"},
         {.exit_code = 1,
          .says = "the planned failure(.|\n)*rank 1 \\(pid [0-9]+\\) did not end after SIGTERM"});
}

TEST_F(Faults, A12_OfTwoFailuresTheEarlierIsTheRoot) {
  expect({.ranks = 3, .fault = "step:1:5:throw,step:2:5:kills_soon"},
         {.exit_code = 1, .says = "^rank 1 (.|\n)*the planned failure(.|\n)*rank 2: killed by"});
}

TEST_F(Faults, A13_AProgramThatCannotBeStartedIsNamedWithTheReason) {
  const std::string launch = (bin_dir() / "muster").string() + " launch -n 3 ";
  expect({.script = launch + "/nowhere/at/all"},
         {.exit_code = 73, .within_s = 2, .says = "'/nowhere/at/all': No such file or directory"});
  for (const auto* nth : {"1", "3"}) {
    expect({.ranks = 3, .shim = format("fork:-:{}:EAGAIN", nth), .run = nth},
           {.exit_code = 73, .within_s = 4, .says = "Resource temporarily unavailable"});
  }
}

TEST_F(Faults, A14_TwoHundredLaunchesLeaveNothingBehind) {
  const auto entries = [](const char* folder) {
    std::error_code gone;
    int64_t count = 0;
    for (auto it = std::filesystem::directory_iterator{folder, gone};
         !gone && it != std::filesystem::directory_iterator{}; it.increment(gone)) {
      ++count;
    }
    return count;
  };
  const int64_t shared = entries("/dev/shm");
  testing::internal::CaptureStderr();
  const int64_t descriptors = entries("/proc/self/fd");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(launch({"true"}, {.ranks = 2}), 0);
    EXPECT_EQ(launch({"sh", "-c", "exit $((RANK * 3))"}, {.ranks = 2}), 3);
  }
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  testing::internal::GetCapturedStderr();
  EXPECT_FALSE(has(read_file("/proc/self/maps"), "muster-place"));
  EXPECT_LE(entries("/dev/shm"), shared + 8);  // Others may use it meanwhile.
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace muster::test
