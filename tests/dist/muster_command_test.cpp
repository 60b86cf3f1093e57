#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "support/paths.h"
#include "support/texts.h"

namespace {

using muster::test::has;
using muster::test::matches;

struct Ended {
  int exit_code = -1;
  std::string text{};  ///< stdout and stderr
};

Ended shell_command(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  Ended ended;
  std::array<char, 4096> block{};
  for (size_t got = 1; got > 0;) {
    got = fread(block.data(), 1, block.size(), pipe);
    ended.text.append(block.data(), got);
  }
  const int status = pclose(pipe);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

const std::string muster_program = muster::test::bin_dir() / "muster";

Ended muster_command(const std::string& arguments) {
  return shell_command(muster_program + " " + arguments);
}

void expect_usage_error(const std::string& arguments, const std::string& part) {
  const auto ended = muster_command(arguments);
  EXPECT_EQ(ended.exit_code, 2) << arguments;
  EXPECT_TRUE(matches(ended.text, "muster: error: [^\n]*\n")) << arguments;
  EXPECT_TRUE(has(ended.text, part)) << arguments;
}

TEST(MusterCommand, SaysWhatThereIs) {
  const auto help = muster_command("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(has(help.text, "\n  launch "));
  EXPECT_TRUE(has(help.text, "\n  matting "));
  const auto launch = muster_command("launch --help");
  EXPECT_EQ(launch.exit_code, 0);
  for (const char* option : {"-n", "--nnodes", "--node_rank", "--master_addr", "--master_port"}) {
    EXPECT_TRUE(has(launch.text, option));
  }
}

TEST(MusterCommand, RefusesWhatItDoesNotKnowInOneLineThatNamesTheClosest) {
  expect_usage_error("", "subcommand is missing");
  expect_usage_error("lunch -n 2 true", "did you mean 'launch'?");
  expect_usage_error("frobnicate", "'frobnicate'");
  expect_usage_error("launch -n 2 --nnode 1 true", "did you mean '--nnodes'?");
  expect_usage_error("launch -n 2 --bogus true", "'--bogus'");
  expect_usage_error("launch true", "-n N");
  expect_usage_error("launch true -n 2", "before PROGRAM");
  expect_usage_error("launch -n 2", "PROGRAM is missing");
  expect_usage_error("launch -n two true", "two");
  expect_usage_error("launch -n 0 true", "found 0");
}

TEST(MusterCommand, SaysWhichHostsItSupports) {
  expect_usage_error("launch -n 2 --nnodes 2 --node_rank 1 --master_addr a true", "one host only");
  expect_usage_error("launch -n 2 --master_addr 10.0.0.1 true", "loopback");
  EXPECT_EQ(muster_command("launch -n 2 --nnodes 1 --node_rank 0 --master_addr 127.0.0.1 "
                           "--master_port 0 true")
                .exit_code,
            0);
}

TEST(MusterCommand, LeavesTheOptionsAfterProgramToIt) {
  const auto ended =
      muster_command("launch -n 1 sh -c 'echo \"$0 $*\"' name -n 5 --help -- --nnodes 7");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.text, "name -n 5 --help -- --nnodes 7\n");
  EXPECT_EQ(muster_command("launch -n 1 -- echo -n").text, "");
}

TEST(MusterCommand, LoadsNoTorchToLaunch) {
  const auto libraries = shell_command("ldd " + muster_program);
  EXPECT_TRUE(has(libraries.text, "libstdc++"));
  EXPECT_FALSE(has(libraries.text, "libtorch"));
}

TEST(MusterCommand, EndsWithTheCodeAndTheBlockOfTheRootCause) {
  const auto ended = muster_command("launch -n 2 sh -c '[ $RANK = 1 ] && kill -9 $$; sleep 20'");
  EXPECT_EQ(ended.exit_code, 137);
  EXPECT_TRUE(matches(ended.text, "rank 1 \\(pid [0-9]+\\) killed by SIGKILL\n  [^\n]*\n"));
  const auto missing = muster_command("launch -n 2 no-such-program");
  EXPECT_EQ(missing.exit_code, 73);
  EXPECT_TRUE(has(missing.text, "'no-such-program'"));
}

}  // namespace
