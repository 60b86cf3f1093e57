#include "fake_training.h"

#include "tests/base/expect_error.h"

#include <muster/train/early_stopping.h>

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using test::FakeRun;
using test::FakeTraining;

/// The epochs that ran, and what was said at the end of the last one.
struct Outcome {
  int64_t epochs = 0;
  std::string reason{};
};

Outcome train(EarlyStopping& callback, const std::vector<double>& values) {
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  for (const double value : values) {
    run.epoch({{"val/loss", value}}, {{"train/loss", 10 * value}});
    if (!training.stops_.empty()) {
      EXPECT_EQ(training.stops_.size(), 1);
      EXPECT_EQ(callback.stopped_epoch(), run.progress(Stage::fit).epoch - 1);
      return {run.progress(Stage::fit).epoch, training.stops_[0]};
    }
  }
  EXPECT_FALSE(callback.stopped_epoch());
  return {static_cast<int64_t>(values.size()), ""};
}

Outcome train(const EarlyStoppingOptions& options, const std::vector<double>& values) {
  EarlyStopping callback{options};
  return train(callback, values);
}

TEST(EarlyStopping, StopsAfterAsManyChecksWithoutABetterValueAsItHasPatience) {
  EarlyStopping callback{{.monitor = "val/loss", .patience = 2}};
  const Outcome outcome = train(callback, {3, 2, 2, 1.5, 1.5, 1.75, 1, 0});
  EXPECT_EQ(outcome.epochs, 6);
  EXPECT_EQ(outcome.reason, "val/loss did not get better in 2 checks (the best was 1.5)");
  EXPECT_EQ(callback.best_score(), 1.5);
  EXPECT_EQ(callback.wait_count(), 2);
}

TEST(EarlyStopping, GoesOnWhileTheValueGetsBetter) {
  EXPECT_EQ(train({.monitor = "val/loss", .patience = 1}, {4, 3, 2, 1}).epochs, 4);
  EXPECT_EQ(
      train({.monitor = "val/loss", .mode = MonitorMode::max, .patience = 1}, {4, 3, 2}).epochs, 2);
}

TEST(EarlyStopping, AsksForMoreThanTheLeastDifference) {
  const std::vector<double> values{1, 0.9, 0.8, 0.7};
  EXPECT_EQ(train({.monitor = "val/loss", .patience = 1, .min_delta = 0.05}, values).epochs, 4);
  EXPECT_EQ(train({.monitor = "val/loss", .patience = 1, .min_delta = 0.25}, values).epochs, 2);
  EXPECT_EQ(
      train({.monitor = "val/loss", .mode = MonitorMode::max, .patience = 1, .min_delta = 0.5},
            {1, 2, 2.5, 9})
          .epochs,
      3);
}

TEST(EarlyStopping, StopsAtAValueThatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(train({.monitor = "val/loss"}, {1, nan, 1}).reason,
            "val/loss is nan, which is not finite");
  EXPECT_EQ(train({.monitor = "val/loss"}, {1, -infinity, 1}).epochs, 2);
  EXPECT_EQ(train({.monitor = "val/loss", .patience = 2, .check_finite = false},
                  {1, nan, 0.5, nan, nan, nan})
                .epochs,
            5);
}

TEST(EarlyStopping, StopsBeyondThresholds) {
  EXPECT_EQ(train({.monitor = "val/loss", .stopping_threshold = 0.5}, {1, 0.5, 0.25, 0}).reason,
            "val/loss is 0.25, better than the stopping threshold 0.5");
  EXPECT_EQ(train({.monitor = "val/loss", .divergence_threshold = 2}, {1, 2, 3}).reason,
            "val/loss is 3, worse than the divergence threshold 2");
  EXPECT_EQ(train({.monitor = "val/loss",
                   .mode = MonitorMode::max,
                   .patience = 9,
                   .divergence_threshold = 0.5},
                  {1, 0.5, 0.25, 1})
                .epochs,
            3);
}

TEST(EarlyStopping, ChecksEachValidationWithinAnEpoch) {
  EarlyStopping callback{{.monitor = "val/loss", .patience = 1}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch_start();
  run.steps(2);
  run.validate({{"val/loss", 1}});
  run.steps(1);
  run.validate({{"val/loss", 2}});
  EXPECT_EQ(training.stops_.size(), 1);
}

TEST(EarlyStopping, FollowsAValueThatOnlyTrainingLogs) {
  EXPECT_EQ(train({.monitor = "train/loss", .patience = 1}, {1, 2}).epochs, 2);
  EXPECT_EQ(
      train({.monitor = "train/loss", .patience = 1, .check_on_train_epoch_end = true}, {1, 2})
          .epochs,
      2);
}

TEST(EarlyStopping, ChecksAtTheEndOfTrainingEpochsWhenToldTo) {
  EarlyStopping callback{{.monitor = "val/loss", .patience = 2, .check_on_train_epoch_end = true}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({{"val/loss", 1}});
  run.epoch({});
  EXPECT_TRUE(training.stops_.empty());
  run.epoch({});
  EXPECT_EQ(training.stops_.size(), 1) << "a value that stays is none that is better";
}

TEST(EarlyStopping, RefusesAMonitorThatNobodyLogs) {
  EXPECT_EQ(test::error_of([] { train({.monitor = "val/los"}, {1}); }).kind(), ErrorKind::usage);
  EXPECT_EQ(train({.monitor = "val/los", .strict = false}, {1, 1, 1, 1, 1}).epochs, 5);
}

TEST(EarlyStopping, PassesOverAnEpochToWhichNoSampleContributed) {
  EarlyStopping callback{{.monitor = "val/loss", .patience = 1}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({{"val/loss", 1}});
  run.epoch({{"val/loss", std::nullopt}});
  EXPECT_TRUE(training.stops_.empty());
}

TEST(EarlyStopping, CountsOnAfterAResumeAndAnewInAnotherTraining) {
  const EarlyStoppingOptions options{.monitor = "val/loss", .patience = 3};
  EarlyStopping first{options};
  EXPECT_EQ(train(first, {1, 2}).epochs, 2);
  EarlyStopping second{options};
  EXPECT_EQ(second.state_key(), first.state_key());
  second.load_state(from_bytes(to_bytes(first.state())));
  EXPECT_EQ(train(second, {3, 4, 5}).epochs, 2);
  EXPECT_EQ(train(second, {9, 8, 7, 6}).epochs, 4);
}

TEST(EarlyStopping, RefusesOptionsOutOfRange) {
  EXPECT_EQ(test::error_of([] { EarlyStopping{EarlyStoppingOptions{}}; }).kind(), ErrorKind::usage);
  EXPECT_EQ(test::error_of([] { EarlyStopping{{.monitor = "a", .patience = -1}}; }).kind(),
            ErrorKind::usage);
  EXPECT_EQ(test::error_of([] { EarlyStopping{{.monitor = "a", .min_delta = -0.5}}; }).kind(),
            ErrorKind::usage);
}

}  // namespace
}  // namespace muster
