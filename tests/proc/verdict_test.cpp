#include <gtest/gtest.h>
#include <muster/base/files.h>

#include <csignal>
#include <vector>

#include "src/proc/verdict_internal.h"
#include "support/temp_folder.h"
#include "support/texts.h"

namespace {

using muster::detail::FailureRecord;
using muster::detail::judge;
using muster::detail::RankOutcome;
using muster::test::has;

RankOutcome exited(int rank, int code, int64_t at_ns) {
  return {.rank = rank, .pid = 100 + rank, .ended = true, .exit_code = code, .ended_ns = at_ns};
}

RankOutcome reported(int rank, int code, int64_t failed_ns, const std::string& message) {
  auto outcome = exited(rank, code, failed_ns + 1000);
  outcome.record = FailureRecord{.code = code, .monotonic_ns = failed_ns, .message = message};
  return outcome;
}

TEST(Verdict, OfSuccessIsZeroAndSaysNothing) {
  const auto verdict = judge(std::vector{exited(0, 0, 1), exited(1, 0, 2)}, 0);
  EXPECT_EQ(verdict.exit_code, 0);
  EXPECT_EQ(verdict.text, "");
}

TEST(Verdict, GoesByWhenARankFailedNotByWhenItEnded) {
  auto first = reported(1, 65, 10, "first");
  first.ended_ns = 99;
  const auto verdict = judge(std::vector{reported(0, 74, 20, "second"), first}, 0);
  EXPECT_EQ(verdict.exit_code, 65);
  EXPECT_EQ(verdict.text,
            "rank 1 (pid 101) exited with code 65\n  first\n"
            "rank 0: exited with code 74: second\n");
}

TEST(Verdict, PrefersALaterCauseToAnEarlierLostPeer) {
  const auto verdict = judge(std::vector{reported(0, 75, 10, "lost"), exited(1, 1, 20)}, 0);
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_EQ(verdict.text, "rank 1 (pid 101) exited with code 1\nrank 0: peer lost\n");
}

TEST(Verdict, BlamesNoRankForWhatTheLauncherDid) {
  auto told = exited(0, 0, 5);
  told.signal = SIGTERM;
  told.told_to_stop = true;
  auto killed = exited(1, 0, 6);
  killed.signal = SIGKILL;
  killed.told_to_stop = killed.killed = true;
  auto stopped = exited(2, 143, 7);
  stopped.told_to_stop = true;
  const auto verdict = judge(std::vector{told, killed, stopped, exited(3, 9, 8)}, 0);
  EXPECT_EQ(verdict.exit_code, 9);
  EXPECT_EQ(verdict.text,
            "rank 3 (pid 103) exited with code 9\n"
            "rank 1 (pid 101) did not end after SIGTERM and was killed\n");
}

TEST(Verdict, BlamesARankThatASignalOfAnotherKindEndedWhileItStopped) {
  auto crashed = exited(0, 0, 5);
  crashed.signal = SIGSEGV;
  crashed.told_to_stop = true;
  const auto verdict = judge(std::vector{crashed}, SIGTERM);
  EXPECT_EQ(verdict.exit_code, 139);
  EXPECT_TRUE(has(verdict.text, "killed by SIGSEGV"));
}

TEST(Verdict, KeepsTheFailureOfARankThatHadToBeEnded) {
  auto slow = reported(0, 65, 5, "bad input");
  slow.exit_code = 0;
  slow.signal = SIGTERM;
  slow.told_to_stop = true;
  const auto verdict = judge(std::vector{slow}, 0);
  EXPECT_EQ(verdict.exit_code, 65);
  EXPECT_EQ(verdict.text, "rank 0 (pid 100) failed with code 65\n  bad input\n");
}

TEST(Verdict, OfAStopIsTheSignalEvenWhenRanksLoseEachOtherOverIt) {
  const auto verdict = judge(std::vector{exited(0, 0, 1), reported(1, 75, 2, "lost")}, SIGINT);
  EXPECT_EQ(verdict.exit_code, 130);
  EXPECT_EQ(verdict.text, "muster: stopped by SIGINT\nrank 1: peer lost\n");
}

TEST(Verdict, NamesARankThatEvenSigkillDoesNotEnd) {
  auto stuck = exited(1, 0, 0);
  stuck.ended = false;
  stuck.told_to_stop = stuck.killed = true;
  const auto verdict = judge(std::vector{exited(0, 1, 1), stuck}, 0);
  EXPECT_EQ(verdict.exit_code, 1);
  EXPECT_TRUE(has(verdict.text, "rank 1 (pid 101) has not ended after SIGKILL"));
}

TEST(Verdict, ShowsNoControlCharactersOfAMessage) {
  const auto verdict = judge(std::vector{reported(0, 1, 1, "a\x1b[31mb\nc\r\x7f")}, 0);
  EXPECT_EQ(verdict.text, "rank 0 (pid 100) exited with code 1\n  a[31mb\n  c\n");
}

TEST(FailureRecord, ArrivesAsItWasSent) {
  const FailureRecord sent{.code = 70,
                           .monotonic_ns = 123456789012,
                           .message = "a:b,\n12:c",
                           .phase = "predict",
                           .source = "x.cpp:3",
                           .error_file = "runs/a b/errors/rank-1.json"};
  const auto bytes = muster::detail::encode(sent);
  const auto got = muster::detail::decode(bytes + "and more");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->code, sent.code);
  EXPECT_EQ(got->monotonic_ns, sent.monotonic_ns);
  EXPECT_EQ(got->message, sent.message);
  EXPECT_EQ(got->phase, sent.phase);
  EXPECT_EQ(got->source, sent.source);
  EXPECT_EQ(got->error_file, sent.error_file);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(muster::detail::decode(bytes.substr(0, size))) << size;
  }
}

TEST(FailureRecord, FitsIntoAPipeHoweverLongItIs) {
  const std::string text(1 << 20, 'x');
  const FailureRecord sent{.message = text, .phase = text, .source = text, .error_file = text};
  const auto bytes = muster::detail::encode(sent);
  EXPECT_LT(bytes.size(), muster::detail::max_record_bytes);
  EXPECT_TRUE(muster::detail::decode(bytes));
}

TEST(FailureRecord, IsNothingInWhatIsNone) {
  for (const std::string bytes :
       {"", "hello", "muster-failure 1\n",
        "muster-failure 1\n99999999999999999999:", "muster-failure 1\n-1:x,",
        "muster-failure 1\n1:0,1:0,0:,0:,0:,0:,", "muster-failure 1\n1:x,1:0,0:,0:,0:,0:,"}) {
    EXPECT_FALSE(muster::detail::decode(bytes)) << bytes;
  }
}

}  // namespace
