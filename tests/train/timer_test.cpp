#include "fake_training.h"

#include "tests/base/expect_error.h"

#include <muster/train/timer.h>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::FakeRun;
using test::FakeTraining;

TEST(Timer, EndsTheTrainingWhenItsTimeIsUp) {
  Timer timer{{.seconds = 100}};
  FakeTraining training;
  FakeRun run{training, timer};
  run.start();
  run.steps(1);
  EXPECT_TRUE(training.stops_.empty());
  EXPECT_GT(timer.time_remaining().value(), 90);
  EXPECT_LE(timer.time_remaining().value(), 100);
  run.end();
  const double elapsed = timer.time_elapsed();
  EXPECT_EQ(timer.time_elapsed(), elapsed) << "the clock stands after the end";

  Timer none{{.duration = "00:00:00:00"}};
  FakeRun other{training, none};
  other.start();
  ASSERT_EQ(training.stops_.size(), 1);
  EXPECT_EQ(training.stops_[0], "its time of 0 s is up");
}

TEST(Timer, GoesOnWithWhatIsLeftAfterAResume) {
  Value state;
  state["time_elapsed"] = 99.5;
  Timer timer{{.duration = "00:00:01:40"}};
  timer.load_state(state);
  FakeTraining training;
  FakeRun run{training, timer};
  run.start();
  EXPECT_TRUE(training.stops_.empty());
  EXPECT_GE(timer.time_elapsed(), 99.5);
  EXPECT_GE(timer.state().find("time_elapsed")->as_double(), 99.5);

  Timer later{{.seconds = 99}};
  later.load_state(state);
  FakeRun over{training, later};
  over.start();
  EXPECT_EQ(training.stops_.size(), 1);
  FakeRun anew{training, later};
  anew.start();
  EXPECT_EQ(training.stops_.size(), 1) << "another training has all of the time";
}

TEST(Timer, LooksAtTheClockAsOftenAsItIsTold) {
  FakeTraining training;
  Timer timer{{.seconds = 0, .interval = TimerOptions::Interval::epoch}};
  FakeRun run{training, timer};
  run.start();
  training.stops_.clear();
  run.steps(4);
  EXPECT_TRUE(training.stops_.empty());
  run.epoch_end();
  EXPECT_EQ(training.stops_.size(), 1);

  Timer each{{.seconds = 0}};
  FakeRun steps{training, each};
  steps.start();
  training.stops_.clear();
  steps.steps(2);
  EXPECT_EQ(training.stops_.size(), 2);
  steps.validate({{"val/loss", 1}});
  EXPECT_EQ(training.stops_.size(), 2);
}

TEST(Timer, MeasuresWithoutALimit) {
  Timer timer;
  FakeTraining training;
  FakeRun run{training, timer};
  run.start();
  run.epoch({});
  EXPECT_FALSE(timer.time_remaining());
  EXPECT_GT(timer.time_elapsed(), 0);
  EXPECT_TRUE(training.stops_.empty());
}

TEST(Timer, RefusesWhatIsNoTime) {
  for (const TimerOptions& options : {TimerOptions{.duration = "soon"}, TimerOptions{.seconds = -1},
                                      TimerOptions{.duration = "00:00:00:01", .seconds = 1}}) {
    EXPECT_EQ(test::error_of([&] { Timer{options}; }).kind(), ErrorKind::usage);
  }
}

}  // namespace
}  // namespace muster
