// Checkpoints of Trainer::fit, what they hold, and trainings that go on from them.

#include "fit_fixture.h"

#include <muster/base/format.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/metrics/aggregate.h>
#include <muster/train/early_stopping.h>
#include <muster/train/ema.h>
#include <muster/train/model_checkpoint.h>

#include <ATen/ops/full.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public FitTest {
 protected:
  /// Adam with a schedule, so that there is a state to lose.
  static void set_adam(Regression& module, Recorder& /*recorder*/) {
    module.optimizers = [](Regression& m) {
      auto adam =
          std::make_shared<torch::optim::Adam>(m.parameters(), torch::optim::AdamOptions{0.01});
      return Optimizers{.optimizer = adam,
                        .schedulers = {{.scheduler = cosine_annealing_lr(*adam, {.t_max = 40}),
                                        .interval = SchedulerConfig::Interval::step},
                                       {.scheduler = reduce_lr_on_plateau(*adam, {.patience = 0}),
                                        .monitor = "val/loss"}}};
    };
  }
  Plan checkpointed(const std::string& run, int ranks = 1) const {
    Plan p = plan(run, ranks);
    p.options.enable_checkpointing = true;
    p.val = 5;
    p.set = set_adam;
    return p;
  }
  [[nodiscard]] fs::path checkpoint(const std::string& run, const std::string& name) const {
    return folder() / run / "checkpoints" / (name + ".ckpt");
  }
};

TEST_F(CheckpointTest, ATrainingThatWasStoppedAndResumedEndsWithTheSameBits) {
  for (const int ranks : {1, 2}) {
    Plan whole = checkpointed("whole", ranks);
    whole.options.max_epochs = 4;
    const auto expected = parameters_after(whole);
    // At an epoch's end, in the middle of one, and before an epoch's last step.
    const int64_t in_epoch = (11 + ranks - 1) / ranks;
    for (const int64_t stop_after : {2 * in_epoch, in_epoch + 2, in_epoch - 1}) {
      Plan first = checkpointed("parts", ranks);
      first.options.max_epochs = 4;
      first.options.max_steps = stop_after;
      EXPECT_GT(difference(parameters_after(first), expected), 0.0);
      Plan rest = checkpointed("parts", ranks);
      rest.options.max_epochs = 4;
      rest.ckpt_path = checkpoint("parts", "last").string();
      fit(rest, [&](const Run& run) {
        EXPECT_TRUE(run.module.flat().equal(expected)) << "stopped after " << stop_after;
        EXPECT_EQ(run.report.step, 4 * in_epoch);
        EXPECT_EQ(run.report.epoch, 4);
      });
    }
  }
}

TEST_F(CheckpointTest, OnlyTheBestAndTheNewestStayWhereCheckpointsAreMadeWithinValidations) {
  Plan whole = checkpointed("whole");
  whole.options.val_check_interval = 4;
  whole.add_callbacks = [](Trainer& trainer) {
    trainer.add_callback(std::make_shared<ModelCheckpoint>(
        ModelCheckpointOptions{.monitor = "val/loss", .save_top_k = 1}));
    trainer.add_callback(std::make_shared<EMA>(EMAOptions{.decay = 0.9}));
  };
  const auto expected = parameters_after(whole);
  Plan part = whole;
  part.options.run_dir = (folder() / "parts").string();
  part.options.max_steps = 13;
  const auto average = parameters_after(part);
  Regression module;
  load_weights(module, checkpoint("parts", "last").string());
  EXPECT_TRUE(module.flat().equal(average));

  part.options.max_steps = -1;
  part.ckpt_path = checkpoint("parts", "last").string();
  EXPECT_TRUE(parameters_after(part).equal(expected));
  std::set<fs::path> kept;
  for (const auto& entry : fs::directory_iterator{folder() / "parts" / "checkpoints"}) {
    kept.insert(fs::canonical(entry.path()));
  }
  EXPECT_LE(kept.size(), 2);
}

TEST_F(CheckpointTest, ACheckpointBeforeAnEpochsValidationGoesOnWithThatValidation) {
  for (const int ranks : {1, 2}) {
    const int64_t in_epoch = (11 + ranks - 1) / ranks;
    Plan p = checkpointed("due", ranks);
    p.options.max_epochs = 3;
    p.add_callbacks = [&](Trainer& trainer) {
      trainer.add_callback(std::make_shared<ModelCheckpoint>(
          ModelCheckpointOptions{.every_n_train_steps = in_epoch}));
    };
    const at::Tensor expected = parameters_after(p);
    p.ckpt_path = checkpoint("due", format("epoch=0-step={}", in_epoch)).string();
    std::vector<int64_t> validated;
    std::mutex mutex;
    p.set = [&](Regression& module, Recorder& recorder) {
      set_adam(module, recorder);
      recorder.then = [&](const std::string& event, const Progress& at) {
        const std::lock_guard lock{mutex};
        if (event == "validate.epoch_end") validated.push_back(at.global_step);
      };
    };
    EXPECT_TRUE(parameters_after(p).equal(expected));
    std::sort(validated.begin(), validated.end());
    EXPECT_EQ(validated.front(), in_epoch);
    EXPECT_EQ(validated.size(), static_cast<size_t>(3 * ranks));
  }
}

TEST_F(CheckpointTest, TheRestOfAnEpochNeedsTheSameEpoch) {
  Plan first = checkpointed("within");
  first.options.max_steps = 3;
  parameters_after(first);
  const auto refuses = [&](ErrorKind kind, const std::vector<std::string>& parts,
                           const std::function<void(Plan&)>& set) {
    Plan p = checkpointed("within");
    p.ckpt_path = checkpoint("within", "last").string();
    set(p);
    expect_error(kind, parts, [&] { fit(p, [](const Run&) {}); });
  };
  refuses(ErrorKind::data, {"\"seed\": 0", "\"seed\": 4"}, [](Plan& p) { p.options.seed = 4; });
  refuses(ErrorKind::data, {"11", "8"}, [](Plan& p) { p.batch_size = 3; });
}

TEST_F(CheckpointTest, TheRestOfAnEpochHasTheSameBatchesOnAnotherNumberOfRanks) {
  std::mutex mutex;
  std::vector<int64_t> seen;
  const auto note = [&](Regression& module, Recorder& recorder) {
    set_adam(module, recorder);
    module.change_loss = [&](const at::Tensor& loss, const Regression::Batch& batch, Step& step) {
      EXPECT_FALSE(step.all_gather(batch.batch_idx()).empty());
      const std::lock_guard lock{mutex};
      seen.push_back(batch.batch_idx());
      return loss;
    };
  };
  for (const int ranks : {1, 2, 3}) {
    for (const int others : {1, 2, 3}) {
      seen.clear();
      Plan first = checkpointed("ranks", ranks);
      first.set = note;
      first.options.max_epochs = 1;
      first.options.max_steps = 2;
      fit(first, [](const Run&) {});
      first.ranks = others;
      first.options.max_steps = -1;
      first.ckpt_path = "last";
      fit(first, [](const Run&) {});
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    }
  }
}

TEST_F(CheckpointTest, ACheckpointThatIsWrittenBesideTheTrainingHasTheValuesOfItsMoment) {
  for (const bool beside : {false, true}) {
    Plan p = checkpointed(beside ? "beside" : "at_once");
    p.options.async_checkpointing = beside;
    p.add_callbacks = [](Trainer& trainer) {
      trainer.add_callback(
          std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.every_n_train_steps = 1}));
      trainer.add_callback(std::make_shared<EMA>(EMAOptions{.decay = 0.5}));
    };
    parameters_after(p);
  }
  int64_t compared = 0;
  for (const auto& entry : fs::directory_iterator{folder() / "at_once" / "checkpoints"}) {
    const auto name = entry.path().filename();
    const auto at_once = read_checkpoint(entry.path());
    const auto beside = read_checkpoint(folder() / "beside" / "checkpoints" / name);
    EXPECT_EQ(safetensors_bytes(at_once.model), safetensors_bytes(beside.model)) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 22 + 2);  // the links too
}

TEST_F(CheckpointTest, ACheckpointThatCannotBeWrittenBesideTheTrainingEndsIt) {
  Plan p = checkpointed("full");
  p.options.async_checkpointing = true;
  p.options.max_epochs = 50;
  p.add_callbacks = [](Trainer& trainer) {
    trainer.add_callback(
        std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.every_n_train_steps = 5}));
  };
  p.set = [&](Regression& module, Recorder& recorder) {
    set_adam(module, recorder);
    recorder.then = [&](const std::string& event, const Progress& at) {
      if (event != "fit.before_step" || at.global_step != 12) return;
      const fs::path best = checkpoint("full", "best");  // the last that is written of one
      while (fs::read_symlink(best) != "epoch=0-step=10.ckpt") std::this_thread::yield();
      fs::rename(folder() / "full" / "checkpoints", folder() / "full" / "moved away");
      std::ofstream{folder() / "full" / "checkpoints"} << "a file where the folder was";
    };
  };
  expect_error(ErrorKind::output, {"checkpoints"}, [&] { fit(p, [](const Run&) {}); });
}

/// Logs in every way that a training can.
void log_much(Regression& module, Mean& metric) {
  module.register_metric("numbers", metric);
  module.change_loss = [&metric](const at::Tensor& loss, const Regression::Batch& batch,
                                 Step& step) {
    const auto numbers = batch.stack(&Point::number).to(at::kDouble);
    metric.update(numbers.sum().item<double>(), batch.size());
    step.log("both", numbers, {.on_step = true, .on_epoch = true});
    step.log("epoch_sum", loss, {.reduce_fx = ReduceFx::sum, .on_step = false, .on_epoch = true});
    for (const auto index : batch.indices()) {
      step.log_image("seen", {at::full({2, 2}, static_cast<double>(index) / 30)}, {.index = index});
    }
    return loss;
  };
}

TEST_F(CheckpointTest, AfterAStopAtAnyStepTheLogsAreThoseOfATrainingThatWasNeverStopped) {
  for (const int ranks : {1, 2}) {
    const auto plan_in = [&](const std::string& run) {
      Plan p = checkpointed(run, ranks);
      p.options.logger = true;
      p.options.log_every_n_steps = 3;
      p.options.val_check_interval = 4;
      p.options.max_epochs = 2;
      return p;
    };
    // As a signal does: stops after `last` steps.
    const auto run = [&](Plan p, int64_t last) {
      std::vector<std::unique_ptr<Mean>> metrics;
      std::mutex mutex;
      p.set = [&](Regression& module, Recorder& recorder) {
        set_adam(module, recorder);
        const std::lock_guard lock{mutex};
        metrics.push_back(std::make_unique<Mean>());
        log_much(module, *metrics.back());
        recorder.then = [last](const std::string& event, const Progress& at) {
          if (event == "fit.before_step" && at.global_step == last - 2) at.training->stop("");
        };
      };
      return parameters_after(p);
    };
    const std::string whole = "whole" + std::to_string(ranks);
    const at::Tensor expected = run(plan_in(whole), -1);
    const int64_t in_epoch = (11 + ranks - 1) / ranks;
    for (int64_t stop = 1; stop < 2 * in_epoch; ++stop) {
      const std::string parts = format("parts{}-{}", ranks, stop);
      Plan p = plan_in(parts);
      run(p, stop);
      p.ckpt_path = "last";
      EXPECT_TRUE(run(p, -1).equal(expected)) << stop;
      for (const auto* name : {"/metrics.csv", "/results.json"}) {
        EXPECT_TRUE(file(parts + name) == file(whole + name))
            << name << " on " << ranks << " ranks, stopped after " << stop;
      }
    }
  }
}

TEST_F(CheckpointTest, AModuleKeepsWhatItWantsInACheckpoint) {
  class Counting : public Regression {
   public:
    int64_t steps = 0;
    at::Tensor training_step(const Batch& batch, Step& step) override {
      ++steps;
      return Regression::training_step(batch, step);
    }
    Value on_save_checkpoint() override { return Value::Dict{{"steps", steps}}; }
    void on_load_checkpoint(const Value& saved) override { steps = saved.find("steps")->as_int(); }
  };
  const Loader<Point> train{points(22), {.batch_size = 2}};
  TrainerOptions options = checkpointed("counting").options;
  {
    Counting module;
    Trainer{options, Group::self()}.fit(module, train);
  }
  options.max_epochs = 3;
  Counting module;
  Trainer{options, Group::self()}.fit(module, train, {}, checkpoint("counting", "last").string());
  EXPECT_EQ(module.steps, 33);
}

TEST_F(CheckpointTest, NamesOfCheckpointsStayInTheirFolder) {
  for (const auto* name : {"", "../x", "a/b", "last", "best", ".hidden", "a b"}) {
    Plan p = checkpointed("names");
    p.set = [name](Regression&, Recorder& recorder) {
      recorder.then = [name](const std::string& event, const Progress& at) {
        if (event == "fit.batch_end") at.training->save({.name = name});
      };
    };
    expect_error(ErrorKind::usage, {"cannot be called"}, [&] { fit(p, [](const Run&) {}); });
  }
}

TEST_F(CheckpointTest, AResumedTrainingKeepsTheValuesThatItHadReported) {
  parameters_after(checkpointed("values"));
  Plan p = checkpointed("values");
  p.ckpt_path = checkpoint("values", "last").string();
  fit(p, [](const Run& run) {
    EXPECT_EQ(run.report.step, 22);
    EXPECT_TRUE(run.report.get("train/loss").has_value());
  });
  const std::string json = file("values/results.json");
  EXPECT_LT(json.find("train/loss"), json.find("\"epochs\": 2"));
}

TEST_F(CheckpointTest, AveragedWeightsAreInTheModelTheCheckpointAndTheValidationAndResume) {
  for (const int ranks : {1, 2}) {
    const auto averaged = [&](const std::string& run) {
      Plan p = checkpointed(run, ranks);
      p.options.max_epochs = 4;
      p.add_callbacks = [](Trainer& trainer) {
        trainer.add_callback(std::make_shared<EMA>(EMAOptions{.decay = 0.9}));
      };
      return p;
    };
    const Loader<Point> val{points(5), {.batch_size = 2}};
    at::Tensor expected;
    fit(averaged("whole"), [&](const Run& run) {
      expected = run.module.flat();
      Trainer trainer{plan("validated").options, Group::self()};
      Regression loaded;
      const auto report = trainer.validate(loaded, val, checkpoint("whole", "last").string());
      EXPECT_TRUE(loaded.flat().equal(expected));
      EXPECT_EQ(report.get("val/loss"), run.report.get("val/loss"));
    });
    Plan plain = checkpointed("plain", ranks);
    plain.options.max_epochs = 4;
    EXPECT_GT(difference(parameters_after(plain), expected), 0.0);

    Plan first = averaged("parts");
    first.options.max_steps = (11 + ranks - 1) / ranks + 3;
    parameters_after(first);
    Plan rest = averaged("parts");
    rest.ckpt_path = checkpoint("parts", "last").string();
    EXPECT_TRUE(parameters_after(rest).equal(expected)) << ranks << " ranks";
  }
}

TEST_F(CheckpointTest, EarlyStoppingAndTheBestCheckpointAreOneDecisionOfAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    Plan p = checkpointed("best", ranks);
    p.options.max_epochs = 60;
    const ModelCheckpointOptions best{.monitor = "val/loss", .save_top_k = 2};
    std::vector<std::shared_ptr<ModelCheckpoint>> checkpoints;
    std::vector<std::shared_ptr<EarlyStopping>> stoppers;
    std::mutex mutex;
    p.add_callbacks = [&](Trainer& trainer) {
      const std::lock_guard lock{mutex};
      checkpoints.push_back(std::make_shared<ModelCheckpoint>(best));
      stoppers.push_back(
          std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "val/loss"}));
      trainer.add_callback(checkpoints.back());
      trainer.add_callback(stoppers.back());
    };
    std::vector<int64_t> steps;
    fit(p, [&](const Run& run) { steps.push_back(run.report.step); });
    EXPECT_LT(steps[0], 60 * ((11 + ranks - 1) / ranks)) << "it never stopped";
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i], steps[0]);
      EXPECT_EQ(stoppers[i]->stopped_epoch(), stoppers[0]->stopped_epoch());
      EXPECT_EQ(checkpoints[i]->best_model_path(), checkpoints[0]->best_model_path());
    }
    EXPECT_EQ(fs::canonical(checkpoint("best", "best")),
              fs::canonical(checkpoints[0]->best_model_path()));
    Trainer trainer{plan("validated").options, Group::self()};
    Regression loaded;
    const Loader<Point> val{points(5), {.batch_size = 2}};
    const auto report = trainer.validate(loaded, val, checkpoint("best", "best").string());
    EXPECT_EQ(report.get("val/loss"), checkpoints[0]->best_model_score());
    fs::remove_all(folder() / "best");
  }
}

TEST_F(CheckpointTest, ThereIsACheckpointAtEachEpochsEndAndAtTheEndOfFit) {
  Plan p = checkpointed("saves");
  p.options.max_epochs = 3;
  p.options.max_steps = 27;
  fit(p, [](const Run&) {});
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder() / "saves" / "checkpoints"}) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"best.ckpt", "epoch=0-step=11.ckpt", "epoch=1-step=22.ckpt",
                                      "epoch=2-step=27.ckpt", "last.ckpt"}));
  const auto last = read_checkpoint(checkpoint("saves", "last"));
  EXPECT_EQ(last.global_step, 27);
  EXPECT_EQ(last.epoch, 2);
  EXPECT_EQ(read_checkpoint(checkpoint("saves", "epoch=0-step=11")).epoch, 0);
}

TEST_F(CheckpointTest, ACheckpointHoldsTheParametersByTheNamesOfTheModule) {
  Plan p = checkpointed("names", 2);
  at::Tensor trained = parameters_after(p);
  std::vector<at::Tensor> parts;
  std::vector<std::string> names;
  auto model = read_checkpoint(checkpoint("names", "last")).model;
  std::sort(model.begin(), model.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  for (const auto& [name, tensor] : model) {
    names.push_back(name);
    parts.push_back(tensor.flatten());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a_bias", "a_weight", "b_bias", "b_weight"}));
  Regression module;
  load_weights(module, checkpoint("names", "last").string());
  EXPECT_TRUE(module.flat().equal(trained));
}

TEST_F(CheckpointTest, AValidationKnowsTheStepOfItsWeights) {
  Plan p = checkpointed("moment");
  const Loader<Point> val{points(3)};
  fit(p, [&](const Run& run) {
    const Report after_fit = run.trainer.validate(run.module, val);
    EXPECT_EQ(after_fit.step, 22);
    EXPECT_EQ(after_fit.epoch, 1);
    const auto of_last =
        run.trainer.validate(run.module, val, checkpoint("moment", "last").string());
    EXPECT_EQ(of_last.step, 22);
    EXPECT_EQ(of_last.epoch, 1);
  });
  Trainer trainer{p.options, Group::self()};
  Regression module;
  EXPECT_EQ(trainer.validate(module, val).step, 0);
  const auto of_first =
      trainer.validate(module, val, checkpoint("moment", "epoch=0-step=11").string());
  EXPECT_EQ(of_first.step, 11);
  EXPECT_EQ(of_first.epoch, 0);
}

TEST_F(CheckpointTest, AFileOfWeightsIsAStartAndNoResumption) {
  parameters_after(checkpointed("donor"));
  Plan p = checkpointed("heir");
  p.ckpt_path = (checkpoint("donor", "last") / "model.safetensors").string();
  p.options.max_epochs = 0;
  Regression donor;
  load_weights(donor, p.ckpt_path);
  fit(p, [&](const Run& run) {
    EXPECT_EQ(run.report.step, 0);
    EXPECT_TRUE(run.module.flat().equal(donor.flat()));
  });
}

TEST_F(CheckpointTest, ACheckpointOfAnotherOptimizerOrThatIsDamagedIsRefused) {
  parameters_after(checkpointed("adam"));
  Plan sgd = checkpointed("adam");
  sgd.set = {};
  sgd.ckpt_path = checkpoint("adam", "last").string();
  expect_error(ErrorKind::data, {"Adam", "SGD"}, [&] { fit(sgd, [](const Run&) {}); });

  Plan damaged = checkpointed("adam");
  damaged.ckpt_path = sgd.ckpt_path;
  const fs::path file = fs::path{sgd.ckpt_path} / "state.safetensors";
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  write_file_atomically(file, bytes);
  expect_error(ErrorKind::data, {"state.safetensors", "damaged"},
               [&] { fit(damaged, [](const Run&) {}); });

  damaged.ckpt_path = checkpoint("adam", "nothing").string();
  expect_error(ErrorKind::usage, {"no checkpoint"}, [&] { fit(damaged, [](const Run&) {}); });
}

}  // namespace
}  // namespace muster::test
