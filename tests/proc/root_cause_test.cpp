#include <gtest/gtest.h>
#include <muster/base/files.h>

#include "support/temp_folder.h"
#include "support/texts.h"
#include "tests/proc/job.h"

namespace {

using muster::test::has;
using muster::test::matches;
using muster::test::rank_program;
using muster::test::run_job;
using muster::test::run_shell;

TEST(RootCause, IsTheMessageOfTheRankThatFailed) {
  const auto job = run_shell("[ $RANK = 1 ] && exec " + rank_program() +
                                 " throw 'cannot read x.png\nit is empty'; exec sleep 20",
                             {.ranks = 2});
  EXPECT_EQ(job.exit_code, 65);
  EXPECT_TRUE(matches(job.err,
                      "rank 1 \\(pid [0-9]+\\) exited with code 65\n"
                      "  cannot read x.png\n"
                      "  it is empty\n"
                      "  during validate, epoch 0, batch 3\n"
                      "  at tests/proc/rank_program.cpp:[0-9]+\n"));
}

TEST(RootCause, IsNotTheRankThatLostAPeer) {
  const auto job = run_job({rank_program(), "peer-lost-first"}, {.ranks = 2});
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_TRUE(matches(job.err,
                      "rank 1 \\(pid [0-9]+\\) exited with code 1\n"
                      "  the loss is not finite\n"
                      "  during [^\n]*\n"
                      "  at [^\n]*\n"
                      "rank 0: peer lost\n"));
}

TEST(RootCause, IsPeerLostOnlyWhenNothingElseIs) {
  const muster::test::TempFolder folder;
  const auto job = run_job({rank_program(), "all-lost", folder / "rank-"}, {.ranks = 2});
  EXPECT_EQ(job.exit_code, 75);
  EXPECT_TRUE(has(job.err, "peer lost: timeout"));
  EXPECT_TRUE(matches(job.err, "rank [01] [^\n]*75\n(  [^\n]*\n)+rank [01]: peer lost\n"));
}

TEST(RootCause, IsTheEarlierOfTwoCloseFailures) {
  for (int i = 0; i < 5; ++i) {
    const muster::test::TempFolder folder;
    const auto job = run_job({rank_program(), "one-after-the-other", folder / "pid"}, {.ranks = 2});
    EXPECT_EQ(job.exit_code, 65);
    EXPECT_TRUE(matches(job.err,
                        "rank 1 \\(pid [0-9]+\\) exited with code 65\n"
                        "  the first\n(  [^\n]*\n)*"
                        "rank 0: exited with code 65: the second\n"));
  }
}

TEST(RootCause, IsPrintedOnceWhenAllRanksSayTheSame) {
  const muster::test::TempFolder folder;
  const auto job = run_job({rank_program(), "mismatch", folder / "rank-"}, {.ranks = 3});
  EXPECT_EQ(job.exit_code, 70);
  const size_t first = job.err.find("ranks disagree");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(job.err.find("ranks disagree", first + 1), std::string::npos) << job.err;
  EXPECT_TRUE(has(job.err, ": the same error\n"));
}

TEST(RootCause, IncludesAnExceptionThatEscapedOnAThread) {
  const auto job = run_job({rank_program(), "terminate"}, {.ranks = 2});
  EXPECT_EQ(job.exit_code, 134);
  EXPECT_TRUE(matches(job.err,
                      "rank 1 \\(pid [0-9]+\\) killed by SIGABRT\n"
                      "  uncaught exception: thrown on a thread\n"
                      "  at [^\n]*\n"));
  EXPECT_LT(job.seconds, 5);
}

TEST(RootCause, IsInAnErrorFileWhicheverWayTheRankEnded) {
  const muster::test::TempFolder folder;
  auto job = run_shell("[ $RANK = 1 ] && exec " + rank_program() + " throw 'no'; exec sleep 20",
                       {.ranks = 2, .run_dir = folder.path()});
  EXPECT_TRUE(has(job.err, "error file " + (folder.path() / "errors/rank-1.json").string()));
  auto file = muster::read_file(folder.path() / "errors/rank-1.json");
  for (const char* part : {R"("rank": 1)", R"("pid": )", R"("code": 65)", R"("message": "no")",
                           R"("phase": "validate, epoch 0, batch 3")",
                           R"("source": "tests/proc/rank_program.cpp:)", R"("time": "20)"}) {
    EXPECT_TRUE(has(file, part));
  }
  job = run_shell("kill -KILL $$", {.ranks = 1, .run_dir = folder.path()});
  EXPECT_TRUE(has(job.err, "error file " + (folder.path() / "errors/rank-0.json").string()));
  file = muster::read_file(folder.path() / "errors/rank-0.json");
  EXPECT_TRUE(has(file, "\"message\": \"killed by SIGKILL\""));
  EXPECT_TRUE(has(file, "\"code\": 137"));
}

TEST(RootCause, IsToldEvenWhenTheErrorFileCannotBeWritten) {
  const auto job =
      run_job({rank_program(), "throw", "no"}, {.ranks = 1, .run_dir = "/proc/nowhere"});
  EXPECT_EQ(job.exit_code, 65);
  EXPECT_EQ(job.err.find("rank 0 (pid "), 0U);
  EXPECT_FALSE(has(job.err, "error file"));
}

TEST(RootCause, OfAMessageThatIsTooLongIsItsBeginning) {
  const auto job = run_job({rank_program(), "throw-long"}, {.ranks = 1});
  EXPECT_EQ(job.exit_code, 65);
  EXPECT_TRUE(has(job.err, "xxxx ... (cut)\n"));
  EXPECT_LT(job.err.size(), 32U * 1024U);
}

TEST(RootCause, IsPrintedByTheProcessItselfWithoutALauncher) {
  const auto alone =
      std::string{
          "unset RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE; "
          "MUSTER_ERROR_FD=1:5 "} +
      rank_program() + " throw 'no such file'; [ $? = 65 ]";
  const auto job = run_shell(alone, {.ranks = 1});
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(job.err.find("muster: error: no such file\n  during validate, "), 0U);
}

}  // namespace
