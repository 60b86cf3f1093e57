#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/proc/launch.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temp_folder.h"
#include "support/texts.h"
#include "tests/proc/job.h"

namespace {

using muster::test::has;
using muster::test::matches;
using muster::test::rank_program;
using muster::test::run_job;
using muster::test::run_shell;
using muster::test::TempFolder;

using Lines = std::vector<std::string>;

Lines sorted_lines(const std::string& text) {
  Lines lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

int open_descriptors() {
  const std::filesystem::directory_iterator all{"/proc/self/fd"};
  return static_cast<int>(std::distance(begin(all), end(all)));
}

TEST(Launch, IsSilentWhenAllRanksSucceed) {
  const auto job = run_shell("true", {.ranks = 3});
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(job.err, "");
}

TEST(Launch, TellsEachRankItsPlace) {
  const auto job = run_shell(
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MUSTER_LAUNCHED",
      {.ranks = 3});
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(sorted_lines(job.out),
            (Lines{"0 0 3 3 127.0.0.1 1", "1 1 3 3 127.0.0.1 1", "2 2 3 3 127.0.0.1 1"}));
}

TEST(Launch, NamesEachJobDifferentlyAndItsRanksAlike) {
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    const auto lines = sorted_lines(run_shell("echo $MUSTER_JOB", {.ranks = 2}).out);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], lines[1]);
    EXPECT_TRUE(matches(lines[0], "[0-9a-f]{32}"));
    names.push_back(lines[0]);
  }
  EXPECT_NE(names[0], names[1]);
}

TEST(Launch, TakesNothingFromTheLauncherAboveIt) {
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  setenv("RANK", "7", 1);
  const auto job = run_shell("echo $RANK[$TORCHELASTIC_USE_AGENT_STORE]", {.ranks = 1});
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");
  unsetenv("RANK");
  EXPECT_EQ(job.out, "0[]\n");
}

TEST(Launch, PassesAListeningSocketOnLoopbackToRankZeroOnly) {
  const auto job = run_job({rank_program(), "sockets"}, {.ranks = 2});
  EXPECT_EQ(sorted_lines(job.out),
            (Lines{"rank 0 has 1 socket, and listens with MUSTER_STORE_FD at 127.0.0.1 MASTER_PORT",
                   "rank 1 has 0 sockets, and no MUSTER_STORE_FD"}))
      << job.err;
}

TEST(Launch, LeavesRanksOnlyTheDescriptorsThatAreTheirs) {
  // Beside what any child of this process gets: the pipe to the launcher, the memory that it
  // shares with the launcher, and rank 0's socket.
  const std::string count = "set -- /proc/$$/fd/*; echo $#";
  std::FILE* child = popen(count.c_str(), "r");
  int usual = 0;
  ASSERT_EQ(std::fscanf(child, "%d", &usual), 1);
  pclose(child);
  const auto job = run_shell("echo $RANK; " + count, {.ranks = 1});
  EXPECT_EQ(job.out, "0\n" + std::to_string(usual + 3) + "\n");
  const auto jobs = run_shell("[ $RANK = 0 ] && exit; " + count, {.ranks = 3});
  const auto others = std::to_string(usual + 2);
  EXPECT_EQ(sorted_lines(jobs.out), (Lines{others, others}));
}

TEST(Launch, GivesStdinToRankZeroOnly) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(write(ends[1], "hello\n", 6), 6);
  close(ends[1]);
  const int before = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  const auto job = run_shell("read line; echo \"$RANK [$line]\"", {.ranks = 2});
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
  EXPECT_EQ(sorted_lines(job.out), (Lines{"0 [hello]", "1 []"}));
}

TEST(Launch, RunsTheSameProgramUnderTheNameInArgv) {
  const auto job = run_job({"any-name", "--gtest_list_tests", "--gtest_filter=Launch.IsSilent*"},
                           {.ranks = 1, .self_exe = true});
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_TRUE(has(job.out, "IsSilentWhenAllRanksSucceed"));
}

TEST(Launch, GivesTheExitCodeOfTheRankThatFailed) {
  const auto job = run_shell("[ $RANK = 1 ] && exit 3; exec sleep 20", {.ranks = 3});
  EXPECT_EQ(job.exit_code, 3);
  EXPECT_TRUE(matches(job.err, "rank 1 \\(pid [0-9]+\\) exited with code 3\n"));
  EXPECT_LT(job.seconds, 5);
}

TEST(Launch, NamesTheSignalThatEndedARank) {
  auto job = run_shell("[ $RANK = 1 ] && kill -KILL $$; exec sleep 20", {.ranks = 2});
  EXPECT_EQ(job.exit_code, 137);
  EXPECT_TRUE(matches(job.err,
                      "rank 1 \\(pid [0-9]+\\) killed by SIGKILL\n"
                      "  possibly out of memory[^\n]*\n"));
  EXPECT_LT(job.seconds, 5);
  job = run_shell("[ $RANK = 0 ] && kill -SEGV $$; exec sleep 20", {.ranks = 2});
  EXPECT_EQ(job.exit_code, 139);
  EXPECT_TRUE(matches(job.err, "rank 0 \\(pid [0-9]+\\) killed by SIGSEGV\n"));
}

TEST(Launch, LetsOtherRanksGoOnWhenOneExitsWithZero) {
  const auto job = run_shell("[ $RANK = 0 ] && exit 0; sleep 0.5; echo done", {.ranks = 2});
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(job.out, "done\n");
}

TEST(Launch, SaysWhyAProgramCannotBeRun) {
  auto job = run_job({"no-such-program-anywhere"}, {.ranks = 2});
  EXPECT_EQ(job.exit_code, 73);
  EXPECT_TRUE(has(job.err, "'no-such-program-anywhere': no such program in any folder"));
  job = run_job({"/nowhere/at/all"}, {.ranks = 2});
  EXPECT_EQ(job.exit_code, 73);
  EXPECT_TRUE(has(job.err, "'/nowhere/at/all': No such file or directory"));
  const TempFolder folder;
  const std::string text_file = folder.path() / "text";
  std::ofstream{text_file} << "no program\n";
  std::filesystem::permissions(text_file, std::filesystem::perms::owner_all);
  job = run_job({text_file}, {.ranks = 2});
  EXPECT_EQ(job.exit_code, 73);
  EXPECT_TRUE(has(job.err, "Exec format error"));
  EXPECT_LT(job.seconds, 2);
}

TEST(Launch, EndsStartedRanksWhenALaterOneCannotStart) {
  // The program removes itself, so that sooner or later a rank finds it gone.
  const TempFolder folder;
  const std::string script = folder.path() / "once";
  std::ofstream{script} << "#!/bin/sh\necho $$ >> " << (folder.path() / "pids").string()
                        << "; rm -f \"$0\"; exec sleep 20\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto job = run_job({script}, {.ranks = 1000});
  EXPECT_EQ(job.exit_code, 73) << job.err;
  EXPECT_LT(job.seconds, 5);
  std::ifstream pids{folder.path() / "pids"};
  int started = 0;
  for (pid_t pid = 0; pids >> pid; ++started) {
    EXPECT_FALSE(muster::test::is_running(pid));
  }
  EXPECT_GE(started, 1);
}

TEST(Launch, RefusesATakenPortByName) {
  const auto job = run_job({rank_program(), "launch-on-own-port"}, {.ranks = 1});
  EXPECT_EQ(job.exit_code, 69);
  EXPECT_TRUE(matches(job.err,
                      ".*cannot listen on 127.0.0.1 port [0-9]+: Address already in use; it is "
                      "process [0-9]+ .*\n.*"));
}

TEST(Launch, RefusesImpossibleOptions) {
  EXPECT_THROW(muster::launch({}), muster::Error);
  EXPECT_THROW(muster::launch({"true"}, {.ranks = 0}), muster::Error);
  EXPECT_THROW(muster::launch({"true"}, {.ranks = 1, .port = 70000}), muster::Error);
}

TEST(Launch, LeavesNoDescriptorAndNoZombieAfterFiftyJobs) {
  const int before = open_descriptors();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(muster::launch({"sh", "-c", "exit $((RANK * 3))"}, {.ranks = 2}), 3);
    EXPECT_THROW(muster::launch({"/nowhere/at/all"}, {.ranks = 2}), muster::Error);
  }
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
