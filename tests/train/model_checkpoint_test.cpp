#include "fake_training.h"

#include "tests/base/expect_error.h"

#include <muster/train/model_checkpoint.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace muster {
namespace {

using test::FakeRun;
using test::FakeTraining;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// What lies in the folder after all that was asked for.
struct Folder {
  std::set<std::string> names{};
  std::string best{};
  std::string last{};

  explicit Folder(const FakeTraining& training) {
    for (const auto& request : training.saves_) {
      names.insert(request.name);
      last = request.name;
      if (request.best) {
        best = request.name;
      }
      for (const auto& name : request.remove) {
        EXPECT_NE(name, request.name);
        names.erase(name);
      }
      EXPECT_TRUE(names.contains(best)) << "best.ckpt points to " << best;
    }
  }
};

using Names = std::set<std::string>;

/// A training of epochs with these values of a validation at their end.
FakeTraining train(ModelCheckpoint& callback, const std::vector<double>& values) {
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  for (const double value : values) {
    run.epoch({{"val/loss", value}});
  }
  run.end();
  return training;
}

TEST(ModelCheckpoint, SavesAtTheEndOfEachEpochAndKeepsAll) {
  ModelCheckpoint callback;
  const FakeTraining training = train(callback, {3, 1, 2});
  const Folder folder{training};
  EXPECT_EQ(folder.names, (Names{"epoch=0-step=4", "epoch=1-step=8", "epoch=2-step=12"}));
  EXPECT_EQ(training.saves_.size(), 3);
  EXPECT_EQ(folder.best, "epoch=2-step=12");
  EXPECT_EQ(callback.best_model_path(), "run/checkpoints/epoch=2-step=12.ckpt");
  EXPECT_EQ(callback.last_model_path(), callback.best_model_path());
  EXPECT_FALSE(callback.best_model_score());
}

TEST(ModelCheckpoint, PointsToTheBestByItsMonitor) {
  ModelCheckpoint lowest{{.monitor = "val/loss"}};
  EXPECT_EQ(Folder{train(lowest, {3, 1, 2})}.best, "epoch=1-step=8");
  EXPECT_EQ(lowest.best_model_score(), 1);
  EXPECT_EQ(lowest.best_model_path(), "run/checkpoints/epoch=1-step=8.ckpt");
  EXPECT_EQ(lowest.last_model_path(), "run/checkpoints/epoch=2-step=12.ckpt");

  ModelCheckpoint highest{{.monitor = "val/loss", .mode = MonitorMode::max}};
  EXPECT_EQ(Folder{train(highest, {3, 1, 2})}.best, "epoch=0-step=4");
}

TEST(ModelCheckpoint, OfEqualOnesTheFirstIsTheBest) {
  ModelCheckpoint callback{{.monitor = "val/loss"}};
  EXPECT_EQ(Folder{train(callback, {2, 1, 1})}.best, "epoch=1-step=8");
}

TEST(ModelCheckpoint, KeepsTheBestAndTheNewest) {
  ModelCheckpoint callback{{.monitor = "val/loss", .save_top_k = 2}};
  const Folder folder{train(callback, {3, 1, 2, 5, 4})};
  EXPECT_EQ(folder.names, (Names{"epoch=1-step=8", "epoch=2-step=12", "epoch=4-step=20"}));
  EXPECT_EQ(folder.best, "epoch=1-step=8");
  EXPECT_EQ(folder.last, "epoch=4-step=20");
}

TEST(ModelCheckpoint, WithoutSaveLastWritesOnlyTheBestAndTheEnd) {
  ModelCheckpoint callback{{.monitor = "val/loss", .save_top_k = 1, .save_last = false}};
  const FakeTraining training = train(callback, {3, 1, 2, 5});
  std::vector<std::string> written;
  written.reserve(training.saves_.size());
  for (const auto& request : training.saves_) {
    written.push_back(request.name);
  }
  EXPECT_EQ(written,
            (std::vector<std::string>{"epoch=0-step=4", "epoch=1-step=8", "epoch=3-step=16"}));
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=1-step=8", "epoch=3-step=16"}));
}

TEST(ModelCheckpoint, KeepsTheNewestOnesWithoutAMonitor) {
  ModelCheckpoint two{{.save_top_k = 2}};
  EXPECT_EQ(Folder{train(two, {1, 2, 3})}.names, (Names{"epoch=1-step=8", "epoch=2-step=12"}));
  ModelCheckpoint none{{.save_top_k = 0}};
  EXPECT_EQ(Folder{train(none, {1, 2, 3})}.names, (Names{"epoch=2-step=12"}));
}

TEST(ModelCheckpoint, TakesNanForTheWorst) {
  ModelCheckpoint callback{{.monitor = "val/loss", .mode = MonitorMode::max, .save_top_k = 2}};
  const Folder folder{train(callback, {nan, 1, nan, 2})};
  EXPECT_EQ(folder.names, (Names{"epoch=1-step=8", "epoch=3-step=16"}));
  EXPECT_EQ(folder.best, "epoch=3-step=16");

  ModelCheckpoint only{{.monitor = "val/loss"}};
  EXPECT_EQ(Folder{train(only, {nan, nan})}.best, "epoch=0-step=4");
  EXPECT_TRUE(std::isnan(only.best_model_score().value_or(0)));
}

TEST(ModelCheckpoint, HasOneOfTheEndWhateverStepThatIs) {
  ModelCheckpoint callback{{.every_n_epochs = 2}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({{"val/loss", 1}});
  run.epoch({{"val/loss", 1}});
  run.epoch({{"val/loss", 1}});
  run.epoch_start();
  run.steps(3);
  run.epoch_end();  // max_steps ends the training within the epoch
  run.end();
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=1-step=8", "epoch=3-step=15"}));
  EXPECT_EQ(training.saves_.size(), 2);
}

TEST(ModelCheckpoint, NamesTheOneOfTheEndByTheEpochOfItsLastStep) {
  ModelCheckpoint callback{{.every_n_epochs = 5}};
  EXPECT_EQ(Folder{train(callback, {1, 2, 3})}.names, (Names{"epoch=2-step=12"}));
}

TEST(ModelCheckpoint, SavesAfterEachNthStep) {
  ModelCheckpoint callback{{.every_n_train_steps = 3}};
  const FakeTraining training = train(callback, {1, 2});
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=0-step=3", "epoch=1-step=6", "epoch=1-step=8"}));
  EXPECT_EQ(training.saves_.size(), 3);

  ModelCheckpoint both{{.every_n_train_steps = 4, .every_n_epochs = 1}};
  EXPECT_EQ(train(both, {1, 2}).saves_.size(), 2) << "one a step";
}

TEST(ModelCheckpoint, SavesAfterAValidationWithinAnEpoch) {
  ModelCheckpoint callback{{.monitor = "val/loss", .save_top_k = 1}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch_start();
  run.steps(2);
  run.validate({{"val/loss", 1}});
  run.steps(2);
  run.validate({{"val/loss", 2}});
  EXPECT_EQ(training.saves_.size(), 1) << "the second one is at the epoch's end";
  run.epoch_end();
  run.end();
  const Folder folder{training};
  EXPECT_EQ(folder.best, "epoch=0-step=2");
  EXPECT_EQ(folder.names, (Names{"epoch=0-step=2", "epoch=0-step=4"}));
}

TEST(ModelCheckpoint, DoesNotRankByAValueOfAnEarlierEpoch) {
  ModelCheckpoint callback{{.monitor = "val/loss", .save_top_k = 2}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({{"val/loss", 1}});
  run.epoch({});
  run.epoch({});
  run.epoch({{"val/loss", 3}});
  run.end();
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=0-step=4", "epoch=3-step=16"}));
}

TEST(ModelCheckpoint, RanksByAValueOfTraining) {
  ModelCheckpoint callback{{.monitor = "train/loss", .save_top_k = 1}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({}, {{"train/loss", 1}});
  run.epoch({}, {{"train/loss", 2}});
  EXPECT_EQ(Folder{training}.best, "epoch=0-step=4");
}

TEST(ModelCheckpoint, IsTheNewestUntilTheMonitorHasAValue) {
  ModelCheckpoint callback{{.monitor = "val/loss", .save_top_k = 1}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({});
  run.epoch({});
  EXPECT_EQ(Folder{training}.best, "epoch=1-step=8");
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=1-step=8"}));
  run.epoch({{"val/loss", 7}});
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=2-step=12"}));
  EXPECT_EQ(callback.best_model_score(), 7);
}

TEST(ModelCheckpoint, RefusesAMonitorThatNobodyLogsOnceAValidationIsOver) {
  ModelCheckpoint callback{{.monitor = "val/los"}};
  FakeTraining training;
  FakeRun run{training, callback};
  run.start();
  run.epoch({}, {{"train/loss", 1}});
  const Error error = test::error_of([&] { run.epoch({{"acc", 1}, {"val/loss", 1}}); });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_TRUE(test::contains(error.what(), "val/los,")) << error.what();
  EXPECT_TRUE(test::contains(error.what(), "val/loss, acc, train/loss")) << error.what();
}

TEST(ModelCheckpoint, FillsInThePattern) {
  const auto name_of = [](const std::string& pattern, bool insert = true) {
    ModelCheckpoint callback{{.filename = pattern, .auto_insert_metric_name = insert}};
    return train(callback, {0.12345}).saves_.at(0).name;
  };
  EXPECT_EQ(name_of("{epoch}-{val/loss:.3f}"), "epoch=0-val_loss=0.123");
  EXPECT_EQ(name_of("e{epoch:03d}_{val/loss:.2e}", false), "e000_1.23e-01");
  EXPECT_EQ(name_of("net {step}"), "net_step=4");
  EXPECT_EQ(name_of("{missing}"), "missing=0");
  EXPECT_EQ(name_of("../{step}"), "_._step=4");
}

TEST(ModelCheckpoint, RefusesAPatternThatGivesNoName) {
  for (const char* pattern :
       {"", "last", "best", "{epoch", "epoch}", "{}", "{epoch:.2f}", "{val/loss:d}",
        "{epoch:{step}}", "{epoch:1000000000}", "{val/loss:.1000000000f}"}) {
    EXPECT_EQ(test::error_of([&] { ModelCheckpoint{{.filename = pattern}}; }).kind(),
              ErrorKind::usage)
        << pattern;
  }
}

TEST(ModelCheckpoint, GivesANameOnlyOnce) {
  ModelCheckpoint all{{.filename = "net"}};
  EXPECT_EQ(Folder{train(all, {1, 2, 3})}.names, (Names{"net", "net-v1", "net-v2"}));
  ModelCheckpoint one{{.save_top_k = 1, .filename = "net"}};
  EXPECT_EQ(Folder{train(one, {1, 2, 3})}.names, (Names{"net"}));
  ModelCheckpoint best{{.monitor = "val/loss", .save_top_k = 1, .filename = "net"}};
  const Folder folder{train(best, {1, 2, 3})};
  EXPECT_EQ(folder.names, (Names{"net", "net-v1"}));
  EXPECT_EQ(folder.best, "net");
}

TEST(ModelCheckpoint, GoesOnWithItsListAfterAResume) {
  const ModelCheckpointOptions options{.monitor = "val/loss", .save_top_k = 1};
  ModelCheckpoint first{options};
  FakeTraining training;
  Value state;
  training.on_save_ = [&] { state = first.state(); };
  FakeRun run{training, first};
  run.start();
  run.epoch({{"val/loss", 1}});
  run.epoch({{"val/loss", 2}});  // the state of the newest is taken as it is written

  ModelCheckpoint second{options};
  EXPECT_EQ(second.state_key(), first.state_key());
  second.load_state(from_bytes(to_bytes(state)));
  training.on_save_ = {};
  training.had_ = {"epoch=0-step=4", "epoch=1-step=8"};
  FakeRun resumed{training, second};
  resumed.at(2, 8).start();
  EXPECT_EQ(second.best_model_score(), 1);
  EXPECT_EQ(second.last_model_path(), "run/checkpoints/epoch=1-step=8.ckpt");
  resumed.epoch({{"val/loss", 3}});
  resumed.end();
  const Folder folder{training};
  EXPECT_EQ(folder.names, (Names{"epoch=0-step=4", "epoch=2-step=12"}));
  EXPECT_EQ(folder.best, "epoch=0-step=4");
}

TEST(ModelCheckpoint, StartsAnewInAnotherRunFolderAndInAnotherTraining) {
  ModelCheckpoint first{{.monitor = "val/loss"}};
  train(first, {1});
  ModelCheckpoint second{{.monitor = "val/loss"}};
  second.load_state(first.state());
  FakeTraining training;
  training.run_dir_ = "elsewhere";
  FakeRun run{training, second};
  run.at(1, 4).start();
  EXPECT_EQ(second.best_model_path(), "");
  run.end();
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=1-step=4"}));

  EXPECT_EQ(Folder{train(first, {5})}.best, "epoch=0-step=4") << "of the second training";
}

TEST(ModelCheckpoint, KeepsOfItsListWhatIsThereAndItsTrainingsWhereverTheFolderIs) {
  ModelCheckpoint first{{.monitor = "val/loss"}};
  train(first, {3, 1, 2});
  ModelCheckpoint second{{.monitor = "val/loss", .save_top_k = 1}};
  second.load_state(first.state());
  FakeTraining training;
  training.run_dir_ = "moved";
  training.had_ = {"epoch=0-step=4", "epoch=2-step=12"};
  FakeRun run{training, second};
  run.at(3, 12).start();
  EXPECT_EQ(second.best_model_path(), "moved/checkpoints/epoch=2-step=12.ckpt");
  EXPECT_EQ(second.last_model_path(), "moved/checkpoints/epoch=2-step=12.ckpt");
  run.epoch({{"val/loss", 4}});
  EXPECT_EQ(training.saves_.at(0).remove, std::vector<std::string>{"epoch=0-step=4"});

  ModelCheckpoint third{{.monitor = "val/loss"}};
  third.load_state(first.state());
  FakeTraining at_end;
  at_end.had_ = {"epoch=0-step=4"};
  FakeRun ends{at_end, third};
  ends.at(3, 12).start();
  EXPECT_EQ(third.best_model_score(), 3);
  ends.end();
  EXPECT_EQ(at_end.saves_.size(), 1) << "its newest is not there";
}

TEST(ModelCheckpoint, WithoutAnIdOfItsTrainingGoesOnInTheSameFolderAlone) {
  ModelCheckpoint first{{.monitor = "val/loss"}};
  FakeTraining training;
  training.id_ = "";
  FakeRun run{training, first};
  run.start();
  run.epoch({{"val/loss", 1}});
  for (const auto* folder : {"run", "moved"}) {
    ModelCheckpoint second{{.monitor = "val/loss"}};
    second.load_state(first.state());
    FakeTraining other;
    other.id_ = "";
    other.run_dir_ = folder;
    other.had_ = {"epoch=0-step=4"};
    FakeRun resumed{other, second};
    resumed.at(1, 4).start();
    EXPECT_EQ(second.best_model_path(),
              other.run_dir_ == "run" ? "run/checkpoints/epoch=0-step=4.ckpt" : "");
  }
}

TEST(ModelCheckpoint, DropsTheWorstWhenAResumedRunKeepsFewer) {
  ModelCheckpoint first{{.monitor = "val/loss"}};
  FakeTraining training = train(first, {3, 1, 2});
  ModelCheckpoint second{{.monitor = "val/loss", .save_top_k = 1}};
  second.load_state(first.state());
  training.had_ = {"epoch=0-step=4", "epoch=1-step=8", "epoch=2-step=12"};
  FakeRun run{training, second};
  run.at(3, 12).start();
  run.epoch({{"val/loss", 4}});
  EXPECT_EQ(Folder{training}.names, (Names{"epoch=1-step=8", "epoch=3-step=16"}));
}

TEST(ModelCheckpoint, RefusesOptionsOutOfRange) {
  const auto kind = [](const ModelCheckpointOptions& options) {
    return test::error_of([&] { ModelCheckpoint{options}; }).kind();
  };
  EXPECT_EQ(kind({.save_top_k = -2}), ErrorKind::usage);
  EXPECT_EQ(kind({.every_n_train_steps = -1}), ErrorKind::usage);
  EXPECT_EQ(kind({.every_n_epochs = -1}), ErrorKind::usage);
}

TEST(ModelCheckpoint, DoesNothingOutsideATraining) {
  ModelCheckpoint callback;
  Progress progress{.stage = Stage::validate};
  callback.on_start(progress);
  callback.on_batch_end(progress);
  callback.on_epoch_end(progress, {});
  callback.on_end(progress);
  EXPECT_EQ(callback.last_model_path(), "");
}

}  // namespace
}  // namespace muster
