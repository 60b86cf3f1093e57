#include <gtest/gtest.h>
#include <muster/base/files.h>

#include <csignal>
#include <iterator>
#include <sstream>
#include <thread>

#include "support/temp_folder.h"
#include "support/texts.h"
#include "tests/proc/job.h"

namespace {

using muster::test::has;
using muster::test::matches;
using namespace std::chrono_literals;
using muster::test::all_gone;
using muster::test::Job;
using muster::test::rank_program;

std::vector<pid_t> numbers(const std::string& text) {
  std::istringstream stream{text};
  return {std::istream_iterator<pid_t>{stream}, {}};
}

const std::string print_and_sleep = "echo $$; echo ready >&2; exec sleep 20";

TEST(Stop, OfTheLauncherStopsAllRanks) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Job job{{"sh", "-c", print_and_sleep}, {.ranks = 2}};
    ASSERT_TRUE(job.wait_for_output("\n", 2));
    kill(job.pid(), signal);
    const auto result = job.finish();
    EXPECT_EQ(result.exit_code, 128 + signal);
    EXPECT_LT(result.seconds, 5);
    EXPECT_TRUE(all_gone(numbers(result.out), 0));
  }
}

TEST(Stop, LetsRanksFinishWhatTheyDo) {
  Job job{{rank_program(), "wait-for-stop"}, {.ranks = 2}};
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  kill(job.pid(), SIGINT);
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_TRUE(has(result.out, "stopped by 15\nstopped by 15\n"));
  EXPECT_EQ(result.err, "muster: stopped by SIGINT\n");
}

TEST(Stop, LeavesAProgramBehindAScriptTheTimeToSave) {
  Job job{{"sh", "-c", rank_program() + " wait-for-stop; echo never"}, {.ranks = 2}};
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  kill(job.pid(), SIGTERM);
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_TRUE(matches(result.out, "(.*stopped by 15\n){2}"));
  EXPECT_FALSE(has(result.out, "never"));
  EXPECT_LT(result.seconds, 5);
}

/// A second interrupt ends ranks that are deaf to the first: each runs the script, which prints
/// "ready".
void interrupt_twice(const std::string& script, int ranks, double limit_s) {
  Job job{{"sh", "-c", script}, {.ranks = ranks}};
  ASSERT_TRUE(job.wait_for_output("ready", ranks));
  kill(job.pid(), SIGINT);
  std::this_thread::sleep_for(200ms);
  kill(job.pid(), SIGINT);
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_LT(result.seconds, limit_s);
}

TEST(Stop, OfAProgramBehindAScriptIsAtOnceAfterASecondInterrupt) {
  interrupt_twice("(trap '' TERM; echo ready; sleep 20); echo never", 1, 5);
}

TEST(Stop, IsToldToAllWhenOneRankReportsIt) {
  const muster::test::TempFolder folder;
  Job job{{rank_program(), "stop-of-one", folder / "rank"}, {.ranks = 2}};
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 129);
  EXPECT_TRUE(matches(result.out, "(.*stopped by 15\n){2}"));
  EXPECT_EQ(result.err, "muster: stopped by SIGHUP\n");
}

TEST(Stop, KillsARankThatIgnoresItAfterTheGrace) {
  Job job{{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"},
          {.ranks = 2, .stop_grace_s = 0.5}};
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  kill(job.pid(), SIGTERM);
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_TRUE(matches(result.err, ".*rank 1 \\(pid [0-9]+\\) did not end after SIGTERM.*"));
  EXPECT_LT(result.seconds, 5);
}

TEST(Stop, BySecondInterruptIsAtOnce) {
  interrupt_twice("trap '' TERM; echo ready; while :; do sleep 0.1; done", 2, 3);
}

TEST(Stop, OfAFailedJobKillsARankThatIgnoresIt) {
  const auto job = muster::test::run_shell(
      "[ $RANK = 1 ] && { sleep 0.2; exit 4; }; trap '' TERM; while :; do sleep 0.1; done",
      {.ranks = 2});
  EXPECT_EQ(job.exit_code, 4);
  EXPECT_TRUE(has(job.err, "did not end after SIGTERM and was killed\n"));
  EXPECT_LT(job.seconds, 5.2);
}

TEST(Stop, ReportsARankThatFailsWhileItStops) {
  Job job{{"sh", "-c", "trap 'exit 74' TERM; echo ready; while :; do sleep 0.1; done"},
          {.ranks = 1}};
  ASSERT_TRUE(job.wait_for_output("ready", 1));
  kill(job.pid(), SIGTERM);
  const auto result = job.finish();
  EXPECT_EQ(result.exit_code, 74);
  // The shell may say that its sleep was "Terminated".
  EXPECT_TRUE(matches(result.err, "(Terminated\n)?rank 0 \\(pid [0-9]+\\) exited with code 74\n"));
}

TEST(Stop, TakesTheChildrenOfRanksAlong) {
  const auto job =
      muster::test::run_shell("sleep 20 & echo $!; [ $RANK = 1 ] && exit 3; wait", {.ranks = 2});
  EXPECT_EQ(job.exit_code, 3);
  const auto pids = numbers(job.out);
  ASSERT_EQ(pids.size(), 2U);
  EXPECT_TRUE(all_gone(pids, 1));
}

TEST(Stop, ReachesRanksWhenTheLauncherIsKilled) {
  Job job{{"sh", "-c", print_and_sleep}, {.ranks = 2}};
  ASSERT_TRUE(job.wait_for_output("\n", 2));
  kill(job.pid(), SIGKILL);
  const auto result = job.finish();
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_TRUE(all_gone(numbers(result.out), 2));
}

TEST(Stop, ReachesAProgramBehindAShellWhenTheLauncherIsKilled) {
  const muster::test::TempFolder folder;
  const std::string prefix = folder.path() / "pid-";
  Job job{
      {"sh", "-c", rank_program() + " attach-and-sleep " + prefix + "$RANK & echo started; wait"},
      {.ranks = 2}};
  std::vector<pid_t> pids;
  for (int i = 0; i < 500 && pids.size() < 2; ++i) {
    std::this_thread::sleep_for(10ms);
    pids = numbers(muster::read_file_if_there(prefix + "0").value_or("") +
                   muster::read_file_if_there(prefix + "1").value_or(""));
  }
  ASSERT_EQ(pids.size(), 2U);
  kill(job.pid(), SIGKILL);
  job.finish();
  EXPECT_TRUE(all_gone(pids, 2));
}

TEST(Stop, IsSeenByALauncherWhoseParentIgnoredItsChildren) {
  std::signal(SIGCHLD, SIG_IGN);
  Job job{{"sh", "-c", "exit 3"}, {.ranks = 2}};
  std::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(job.finish().exit_code, 3);
}

TEST(Stop, IgnoresAHangUpThatWasIgnoredBefore) {
  std::signal(SIGHUP, SIG_IGN);
  Job job{{"sh", "-c", "echo ready; sleep 1"}, {.ranks = 1}};
  std::signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(job.wait_for_output("ready", 1));
  kill(job.pid(), SIGHUP);
  EXPECT_EQ(job.finish().exit_code, 0);
}

}  // namespace
