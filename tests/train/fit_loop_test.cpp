// The loop of Trainer::fit: hooks, rows, validations, limits, and wishes to stop.

#include "fit_fixture.h"
#include "plain_fit.h"

#include <muster/base/files.h>

#include <filesystem>
#include <mutex>
#include <sstream>

namespace muster::test {
namespace {

/// Notes each hook as it runs, and logs in it.
class Noting : public Regression {
 public:
  std::vector<std::string> hooks{};

  void setup(Step& step) override { note("setup", step); }
  void on_fit_start(Step& step) override { note("fit_start", step); }
  void on_train_start(Step& step) override { note("train_start", step); }
  void on_train_epoch_start(Step& step) override { note("train_epoch_start", step); }
  void on_train_batch_start(const Batch& /*batch*/, Step& step) override {
    note("train_batch_start", step);
  }
  at::Tensor training_step(const Batch& batch, Step& step) override {
    note("training_step", step);
    return Regression::training_step(batch, step);
  }
  void on_before_optimizer_step(torch::optim::Optimizer& /*optimizer*/, Step& step) override {
    note("before_optimizer_step", step);
  }
  void on_train_batch_end(const at::Tensor& loss, const Batch& /*batch*/, Step& step) override {
    EXPECT_FALSE(loss.requires_grad());
    note("train_batch_end", step);
  }
  void on_validation_start(Step& step) override {
    EXPECT_FALSE(is_training());
    note("validation_start", step);
  }
  void on_validation_end(Step& step) override { note("validation_end", step); }
  void on_validation_model_train(Step& step) override {
    Regression::on_validation_model_train(step);
    EXPECT_TRUE(is_training());
  }
  void on_train_epoch_end(Step& step) override { note("train_epoch_end", step); }
  void on_train_end(Step& step) override { note("train_end", step); }
  void on_fit_end(Step& step) override { note("fit_end", step); }
  void teardown(Step& step) override { note("teardown", step); }

 private:
  void note(const std::string& hook, Step& step) {
    hooks.push_back(hook);
    step.log("rank/" + hook, step.rank());
    step.log_image("image/" + hook, {some_numbers({3, 5}, 1).abs()},
                   {.captions = {hook}, .index = 0});
    step.log_text("text/" + hook, "seen");
  }
};

TEST_F(FitTest, HooksRunInLightningsOrderAndEachMayLog) {
  for (const int ranks : {1, 3}) {
    Plan p = plan("hooks" + std::to_string(ranks), ranks);
    p.options.max_epochs = 1;
    p.options.accumulate_grad_batches = 2;
    run_threads(ranks, [&](Group& group) {
      Trainer trainer{p.options, group};
      Noting module;
      const Loader<Point> train{
          points(int64_t{3} * ranks)};  // a step of two rounds, and one of one
      const Loader<Point> val{points(2)};
      const Report report = trainer.fit(module, train, val);
      const std::vector<std::string> expected{"setup",
                                              "fit_start",
                                              "validation_start",
                                              "validation_end",  // sanity check
                                              "train_start",
                                              "train_epoch_start",  //
                                              "train_batch_start",
                                              "training_step",
                                              "train_batch_end",  //
                                              "train_batch_start",
                                              "training_step",
                                              "before_optimizer_step",
                                              "train_batch_end",
                                              "train_batch_start",
                                              "training_step",
                                              "before_optimizer_step",
                                              "train_batch_end",
                                              "validation_start",
                                              "validation_end",  //
                                              "train_epoch_end",
                                              "train_end",
                                              "fit_end",
                                              "teardown"};
      EXPECT_EQ(module.hooks, expected);
      for (const auto& hook : expected) {
        EXPECT_EQ(report.get("rank/" + hook), (ranks - 1) / 2.0) << hook;
      }
      group.finish();
    });
    std::string json = file("hooks" + std::to_string(ranks) + "/results.json");
    json.resize(json.find("\"validate\""));
    for (const auto* hook : {"setup", "training_step", "before_optimizer_step", "teardown"}) {
      EXPECT_TRUE(contains(json, std::string{"\"image/"} + hook + '"')) << hook;
    }
  }
}

TEST_F(FitTest, CallbacksHearOfTrainingAndItsValidationsButNotOfTheSanityCheck) {
  Plan p = plan("callbacks");
  p.options.max_epochs = 1;
  p.options.limit_train_batches = 2;
  p.val = 2;
  fit(p, [](const Run& run) {
    const std::vector<std::string> expected{"fit.start",
                                            "fit.epoch_start",
                                            "fit.before_step",
                                            "fit.batch_end",
                                            "fit.before_step",
                                            "fit.batch_end",
                                            "validate.start",
                                            "validate.epoch_start",
                                            "validate.batch_end",
                                            "validate.epoch_end",
                                            "validate.end",
                                            "fit.epoch_end",
                                            "fit.end"};
    EXPECT_EQ(run.recorder.events, expected);
  });
}

TEST_F(FitTest, RowsComeEveryNStepsAndAtTheLastStepOfAnEpoch) {
  Plan p = plan("intervals");  // 11 steps an epoch
  p.options.logger = true;
  p.options.log_every_n_steps = 4;
  fit(p, [](const Run&) {});
  std::vector<std::string> steps;
  std::istringstream csv{file("intervals/metrics.csv")};
  for (std::string line; std::getline(csv, line);) steps.push_back(line.substr(0, line.find(',')));
  EXPECT_EQ(steps, (std::vector<std::string>{"step", "4", "8", "11", "12", "16", "20", "22"}));
}

struct IntervalCase {
  const char* name;
  std::function<void(TrainerOptions&)> set;
  std::vector<int64_t> steps;  ///< after which there was a validation
};

TEST_F(FitTest, ValidationComesWhenTheOptionsSaySo) {
  const std::vector<IntervalCase> cases{
      {"default", [](auto&) {}, {10, 20, 30}},
      {"part", [](auto& o) { o.val_check_interval = 0.5; }, {5, 10, 15, 20, 25, 30}},
      {"batches", [](auto& o) { o.val_check_interval = 4; }, {4, 8, 14, 18, 24, 28}},
      {"epochs", [](auto& o) { o.check_val_every_n_epoch = 2; }, {20}},
      {"across",
       [](auto& o) {
         o.check_val_every_n_epoch.reset();
         o.val_check_interval = 12;
       },
       {12, 24}},
      {"none", [](auto& o) { o.limit_val_batches = 0; }, {}},
      {"steps", [](auto& o) { o.max_steps = 15; }, {10}},
  };
  for (const auto& what : cases) {
    Plan p = plan(what.name);
    p.train = 20;
    p.val = 3;
    p.options.max_epochs = 3;
    what.set(p.options);
    std::vector<int64_t> steps;
    p.set = [&](Regression&, Recorder& recorder) {
      recorder.then = [&](const std::string& event, const Progress& at) {
        if (event == "validate.epoch_end") steps.push_back(at.global_step);
      };
    };
    fit(p, [](const Run&) {});
    EXPECT_EQ(steps, what.steps) << what.name;
  }
}

TEST_F(FitTest, LimitsBoundEpochsStepsAndBatches) {
  Plan p = plan("limits");
  p.options.max_epochs = 3;
  p.options.limit_train_batches = 4;
  fit(p, [](const Run& run) { EXPECT_EQ(run.report.step, 12); });
  p.options.max_steps = 6;
  fit(p, [](const Run& run) {
    EXPECT_EQ(run.report.step, 6);
    EXPECT_EQ(run.report.epoch, 1);  // epochs that were completed
  });
  p.options.max_epochs = 0;
  fit(p, [](const Run& run) { EXPECT_EQ(run.report.step, 0); });
  p.options = plan("dev").options;
  p.val = 9;
  p.options.fast_dev_run.batches = 2;
  fit(p, [](const Run& run) {
    EXPECT_EQ(run.report.step, 2);
    EXPECT_EQ(run.recorder.count("validate.batch_end"), 2);
    EXPECT_TRUE(run.report.get("val/loss").has_value());
  });
}

TEST_F(FitTest, ATrainingEndsWhenItsTimeIsUpOnAllRanksAtOneStep) {
  for (const int ranks : {1, 2}) {
    Plan p = plan("time", ranks);
    p.options.max_epochs.reset();
    p.options.max_time = "00:00:00:01";
    std::vector<int64_t> steps;
    fit(p, [&](const Run& run) { steps.push_back(run.report.step); });
    EXPECT_GT(steps[0], 0);
    EXPECT_EQ(steps, std::vector<int64_t>(static_cast<size_t>(ranks), steps[0]));
  }
}

TEST_F(FitTest, TheSanityCheckTakesAsManyBatchesAsItIsTold) {
  for (const auto& [batches, expected] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {2, 2}, {100, 5}, {-1, 5}}) {
    Plan p = plan("sanity");
    p.val = 9;
    p.options.max_epochs = 0;
    p.options.num_sanity_val_steps = batches;
    int64_t seen = 0;
    p.set = [&](Regression& module, Recorder&) {
      module.in_validation = [&](Step& step) {
        ++seen;
        EXPECT_EQ(step.stage(), Stage::validate);
      };
    };
    fit(p, [](const Run& run) { EXPECT_FALSE(run.report.get("val/loss").has_value()); });
    EXPECT_EQ(seen, expected) << batches;
  }
}

TEST_F(FitTest, SchedulersGoOnOnceInTheirFrequency) {
  Plan p = plan("schedule");
  p.options.max_epochs = 6;
  std::vector<double> rates;
  p.set = [&](Regression& module, Recorder& recorder) {
    module.optimizers = [](Regression& m) {
      auto sgd = std::make_shared<torch::optim::SGD>(m.parameters(), 1.0);
      return Optimizers{
          .optimizer = sgd,
          .schedulers = {{.scheduler = exponential_lr(*sgd, {.gamma = 0.5}), .frequency = 2}}};
    };
    recorder.then = [&](const std::string& event, const Progress& at) {
      if (event == "fit.epoch_start") {
        rates.push_back(at.training->optimizer().param_groups()[0].options().get_lr());
      }
    };
  };
  fit(p, [](const Run&) {});
  EXPECT_EQ(rates, (std::vector<double>{1.0, 1.0, 0.5, 0.5, 0.25, 0.25}));
}

TEST_F(FitTest, TheStepsOfATrainingAreKnownBeforehand) {
  const Loader<Point> train{points(22), {.batch_size = 2}};
  const auto steps = [&](const std::function<void(TrainerOptions&)>& set) {
    TrainerOptions options = plan("steps").options;
    set(options);
    return Trainer{options, Group::self()}.estimated_stepping_batches(train);
  };
  EXPECT_EQ(steps([](auto&) {}), 22);
  EXPECT_EQ(steps([](auto& o) { o.accumulate_grad_batches = 4; }), 6);
  EXPECT_EQ(steps([](auto& o) { o.limit_train_batches = 3; }), 6);
  EXPECT_EQ(steps([](auto& o) { o.max_steps = 5; }), 5);
  EXPECT_EQ(steps([](auto& o) { o.max_epochs = -1; }), std::nullopt);
}

TEST_F(FitTest, AFailureAfterAValidationWithinAnEpochIsToldAsOneOfTraining) {
  Plan p = plan("phase");
  p.val = 3;
  p.options.val_check_interval = 5;
  const Loader<Point> train{points(p.train), {.batch_size = p.batch_size}};
  const Loader<Point> val{points(p.val)};
  Trainer trainer{p.options, Group::self()};
  Regression module;
  module.change_loss = [](const at::Tensor& loss, const Regression::Batch& batch, Step&) {
    check(batch.batch_idx() != 7, "on purpose");
    return loss;
  };
  expect_error(ErrorKind::usage, {"on purpose"}, [&] { trainer.fit(module, train, val); });
  EXPECT_EQ(trainer.phase(), "fit, epoch 0, step 7, batch 7");
}

TEST_F(FitTest, ValuesOfStepsAreForHooksOfSteps) {
  Plan p = plan("on_step");
  p.val = 3;
  p.set = [](Regression& module, Recorder&) {
    module.in_validation = [](Step& step) { step.log("x", 1.0, {.on_step = true}); };
  };
  expect_error(ErrorKind::usage, {"log(\"x\", on_step)"}, [&] { fit(p, [](const Run&) {}); });
}

TEST_F(FitTest, OverfittingSeesTheSameFirstBatchesEachEpochWithoutShuffling) {
  Plan p = plan("overfit");
  p.options.overfit_batches = 2;
  std::vector<std::vector<int64_t>> batches;
  p.set = [&](Regression& module, Recorder&) {
    module.change_loss = [&](const at::Tensor& loss, const Regression::Batch& batch, Step&) {
      batches.push_back(batch.indices());
      return loss;
    };
  };
  fit(p, [](const Run&) {});
  const std::vector<std::vector<int64_t>> expected{{0, 1}, {2, 3}, {0, 1}, {2, 3}};
  EXPECT_EQ(batches, expected);
}

TEST_F(FitTest, AWishToStopOfOneRankStopsAllAfterTheSameStep) {
  for (const auto* event : {"fit.batch_end", "fit.epoch_end", "validate.epoch_end"}) {
    for (const int ranks : {1, 2, 3}) {
      Plan p = plan("stop", ranks);
      p.val = 3;
      p.options.max_epochs = 50;
      std::mutex mutex;
      int calls = 0;
      p.set = [&](Regression&, Recorder& recorder) {
        recorder.then = [&](const std::string& now, const Progress& at) {
          const std::lock_guard lock{mutex};
          // The last thread to come asks, and the others do not.
          if (now == event && at.global_step >= 3 && ++calls == ranks) {
            at.training->stop("enough");
          }
        };
      };
      std::vector<int64_t> steps;
      fit(p, [&](const Run& run) { steps.push_back(run.report.step); });
      const int64_t in_epoch = (11 + ranks - 1) / ranks;
      const int64_t expected = event == std::string{"fit.batch_end"} ? 4 : in_epoch;
      EXPECT_EQ(steps, std::vector<int64_t>(static_cast<size_t>(ranks), expected)) << event;
    }
  }
}

/// What a run folder may hold that somebody else has put there.
class RunFolder : public FitTest {
 protected:
  Plan checkpointed() const {
    Plan p = plan("run", 1);
    p.options.enable_checkpointing = true;
    return p;
  }
};

TEST_F(RunFolder, LinksToFoldersElsewhereStayAndAreWrittenThrough) {
  std::filesystem::create_directories(folder() / "run");
  for (const auto* name : {"checkpoints", "predictions", "spool", "media", "errors"}) {
    std::filesystem::create_directories(folder() / "elsewhere" / name);
    std::filesystem::create_directory_symlink(folder() / "elsewhere" / name,
                                              folder() / "run" / name);
  }
  fit(checkpointed(), [](const Run&) {});
  for (const auto* name : {"checkpoints", "predictions", "spool", "media", "errors"}) {
    EXPECT_TRUE(std::filesystem::is_symlink(folder() / "run" / name)) << name;
  }
  EXPECT_TRUE(std::filesystem::is_directory(folder() / "elsewhere/checkpoints/last.ckpt"));
}

TEST_F(RunFolder, LosesWhatAKilledCommandHasNotFinished) {
  const std::filesystem::path run = folder() / "run";
  const std::string name = ".5bb1dbb6492f704b.part";
  for (const auto* place : {"", "media", "tables", "predictions", "spool/rank-1"}) {
    write_file_atomically(run / place / name, "half");
  }
  write_file_atomically(run / "media/.mine.part", "");
  fit(plan("run", 1), [](const Run&) {});
  for (const auto* place : {"", "media", "tables", "predictions", "spool/rank-1"}) {
    EXPECT_FALSE(std::filesystem::exists(run / place / name)) << place;
  }
  EXPECT_FALSE(std::filesystem::exists(run / "spool"));
  EXPECT_TRUE(std::filesystem::exists(run / "media/.mine.part"));
}

TEST_F(RunFolder, NoCallbackRemovesACheckpointOutsideOfIt) {
  write_file_atomically(folder() / "other.ckpt/manifest.json", "{}");
  for (const auto* name : {"../../other", "/other", "..", ""}) {
    Plan p = checkpointed();
    p.set = [name](Regression&, Recorder& recorder) {
      recorder.then = [name](const std::string& event, const Progress& at) {
        if (event == "fit.batch_end") at.training->save({.name = "mine", .remove = {name}});
      };
    };
    expect_error(ErrorKind::usage, {"cannot be called"}, [&] { fit(p, [](const Run&) {}); });
  }
  EXPECT_TRUE(std::filesystem::exists(folder() / "other.ckpt/manifest.json"));
}

/// For those who are no such tests.
class Fits : public FitTest {
 public:
  static void run(const PlainFit& plain) {
    Plan p{.ranks = plain.ranks, .options = plain.options, .ckpt_path = plain.ckpt_path};
    p.add_callbacks = [&plain](Trainer& trainer) {
      if (plain.callback) trainer.add_callback(plain.callback());
    };
    fit(p, [](const Run&) {});
  }
};

}  // namespace

void run_plain_fit(const PlainFit& plain) { Fits::run(plain); }

}  // namespace muster::test
