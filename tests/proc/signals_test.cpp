#include <gtest/gtest.h>
#include <muster/proc/signals.h>

#include <csignal>
#include <cstdlib>

// The flag belongs to the process, so that each case has one of its own.
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

[[noreturn]] void raise_all_and_exit(std::initializer_list<int> signals) {
  muster::install_stop_signals();
  for (const int signal : signals) {
    raise(signal);
  }
  std::_Exit(muster::stop_requested() ? muster::stop_signal() : 0);
}

TEST(StopSignals, AreAFlagAndNoEnd) {
  EXPECT_FALSE(muster::stop_requested());
  EXPECT_EXIT(raise_all_and_exit({}), ExitedWithCode(0), "");
  EXPECT_EXIT(raise_all_and_exit({SIGTERM}), ExitedWithCode(SIGTERM), "");
  EXPECT_EXIT(raise_all_and_exit({SIGHUP}), ExitedWithCode(SIGHUP), "");
  EXPECT_EXIT(raise_all_and_exit({SIGUSR1}), ExitedWithCode(SIGUSR1), "");
}

TEST(StopSignals, TheFirstCountsButARequestToSaveGivesWay) {
  EXPECT_EXIT(raise_all_and_exit({SIGTERM, SIGHUP, SIGTERM}), ExitedWithCode(SIGTERM), "");
  EXPECT_EXIT(raise_all_and_exit({SIGUSR1, SIGTERM}), ExitedWithCode(SIGTERM), "");
  EXPECT_EXIT(raise_all_and_exit({SIGTERM, SIGUSR1}), ExitedWithCode(SIGTERM), "");
}

TEST(StopSignals, ASecondInterruptEndsTheProcess) {
  EXPECT_EXIT(raise_all_and_exit({SIGINT}), ExitedWithCode(SIGINT), "");
  EXPECT_EXIT(raise_all_and_exit({SIGINT, SIGINT}), KilledBySignal(SIGINT), "");
}

TEST(StopSignals, AnIgnoredHangUpStaysIgnored) {
  const auto ignore_first = [] {
    std::signal(SIGHUP, SIG_IGN);
    raise_all_and_exit({SIGHUP});
  };
  EXPECT_EXIT(ignore_first(), ExitedWithCode(0), "");
}

}  // namespace
