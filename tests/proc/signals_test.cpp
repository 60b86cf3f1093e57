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
}

TEST(StopSignals, TheFirstCounts) {
  EXPECT_EXIT(raise_all_and_exit({SIGTERM, SIGHUP, SIGTERM}), ExitedWithCode(SIGTERM), "");
}

TEST(StopSignals, ARequestToSaveIsNoneToStopAndIsTakenOnceEachTimeItComes) {
  const auto save_twice = [] {
    muster::install_stop_signals();
    bool right = !muster::take_save_request();
    for (int time = 0; time < 2; ++time) {
      raise(SIGUSR1);
      right = right && muster::take_save_request() && !muster::take_save_request();
    }
    raise(SIGTERM);
    std::_Exit(right && muster::stop_signal() == SIGTERM ? 0 : 1);
  };
  EXPECT_EXIT(save_twice(), ExitedWithCode(0), "");
  EXPECT_EXIT(raise_all_and_exit({SIGUSR1}), ExitedWithCode(0), "");
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
