// Trainer::fit: exact gradients at any number of ranks, limits, intervals, and what stops it.

#include "fit_fixture.h"

#include <mutex>
#include <sstream>
#include <tuple>

namespace muster::test {
namespace {

class SeveralRanks : public FitTest,
                     public ::testing::WithParamInterface<std::tuple<int, int, at::ScalarType>> {};

// 11 batches, the last one short: with 2 and 3 ranks the last round is uneven.
TEST_P(SeveralRanks, TrainAsOneProcessDoesWithAccumulatedBatches) {
  const auto [ranks, accumulate, dtype] = GetParam();
  const auto plan_for = [&, accumulate = accumulate, dtype = dtype](int64_t w, int64_t batches) {
    Plan p = plan("W" + std::to_string(w), static_cast<int>(w));
    p.dtype = dtype;
    p.train = 21;
    p.options.max_epochs.reset();
    p.options.max_steps = 20;
    p.options.accumulate_grad_batches = batches;
    return p;
  };
  const at::Tensor alone = parameters_after(plan_for(1, int64_t{ranks} * accumulate));
  const at::Tensor together = parameters_after(plan_for(ranks, accumulate));
  EXPECT_GT(difference(alone, Regression{dtype}.flat()), 0.1);  // it has learnt something
  if (dtype == at::kDouble) {
    EXPECT_LT(difference(alone, together), 1e-12);
  } else {
    EXPECT_LT(difference(alone, together), 1e-4 * alone.abs().max().item<double>());
  }
}

INSTANTIATE_TEST_SUITE_P(Fit, SeveralRanks,
                         ::testing::Combine(::testing::Values(2, 3), ::testing::Values(1, 2),
                                            ::testing::Values(at::kDouble, at::kFloat)));

TEST_F(FitTest, AnEpochHasAsManyStepsAsItsBatchesFillAndEachSampleCountsOnce) {
  for (const int ranks : {1, 2, 3}) {
    Plan p = plan("steps", ranks);
    std::mutex mutex;
    std::map<int64_t, int> seen;
    p.set = [&](Regression& module, Recorder&) {
      module.change_loss = [&](const at::Tensor& loss, const Regression::Batch& batch, Step&) {
        const std::lock_guard lock{mutex};
        for (const auto index : batch.indices()) ++seen[index];
        return loss;
      };
    };
    p.train = 21;
    fit(p, [&](const Run& run) {
      EXPECT_EQ(run.report.step, 2 * ((11 + ranks - 1) / ranks));
      EXPECT_EQ(run.report.epoch, 2);
    });
    EXPECT_EQ(seen.size(), 21U);
    for (const auto& [index, times] : seen) EXPECT_EQ(times, 2) << index;
  }
}

TEST_F(FitTest, TheValueOfAStepIsThatOfAllItsSamplesOnAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    Plan p = plan("rows", ranks);
    p.train = 5;  // batches of 2, 2 and 1
    p.shuffle = false;
    p.options.max_epochs = 1;
    p.options.accumulate_grad_batches = 3;  // all of them in one step
    p.set = [](Regression& module, Recorder&) {
      module.change_loss = [](const at::Tensor& loss, const Regression::Batch& batch, Step& step) {
        const auto numbers = batch.stack(&Point::number).to(at::kDouble);
        step.log("mean", numbers.mean());
        step.log("each", numbers);
        step.log("whole", numbers.mean(), {.on_step = false, .on_epoch = true});
        step.log("both", numbers.mean(), {.on_step = true, .on_epoch = true});
        step.log("total", numbers.sum(), {.reduce_fx = ReduceFx::sum});
        return loss;
      };
    };
    fit(p, [&](const Run& run) {
      for (const auto* name : {"mean", "each", "whole", "both_step", "both_epoch"}) {
        EXPECT_EQ(run.report.get(name), 2.0) << name << " on " << ranks;
      }
      EXPECT_EQ(run.report.get("total"), 10.0);
      EXPECT_FALSE(run.report.get("both").has_value());
    });
  }
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

TEST_F(FitTest, GradientsAreClippedByNormOrByValue) {
  // A step without momentum moves the parameters by the rate times the gradient.
  const auto moved = [&](const std::function<void(TrainerOptions&)>& set) {
    Plan p = plan("clip");
    p.options.max_steps = 1;
    p.set = [](Regression& module, Recorder&) {
      module.optimizers = [](Regression& m) {
        return Optimizers{.optimizer = std::make_shared<torch::optim::SGD>(m.parameters(), 1.0)};
      };
    };
    set(p.options);
    return parameters_after(p) - Regression{}.flat();
  };
  const auto free = moved([](auto&) {});
  const auto by_norm = moved([](auto& o) { o.gradient_clip_val = 0.25; });
  const auto by_value = moved([](auto& o) {
    o.gradient_clip_val = 0.01;
    o.gradient_clip_algorithm = ClipAlgorithm::value;
  });
  EXPECT_GT(free.norm().item<double>(), 0.3);
  EXPECT_NEAR(by_norm.norm().item<double>(), 0.25, 1e-5);
  EXPECT_LT(difference(by_norm / by_norm.norm(), free / free.norm()), 1e-5);
  EXPECT_LT(difference(by_value, free.clamp(-0.01, 0.01)), 1e-12);
}

TEST_F(FitTest, ALossThatIsNotFiniteOnOneRankStopsAllAtTheSameStep) {
  for (const int ranks : {1, 2, 3}) {
    Plan p = plan("nan", ranks);
    p.set = [](Regression& module, Recorder&) {
      module.change_loss = [](const at::Tensor& loss, const Regression::Batch& batch, Step& step) {
        // Batch 7 is rank 1's of 2 and 3.
        return step.epoch() == 1 && batch.batch_idx() == 7 ? loss * NAN : loss;
      };
    };
    const std::string rank = std::to_string(7 % ranks);
    const std::string step = std::to_string((11 + ranks - 1) / ranks + 7 / ranks);
    expect_error(ErrorKind::user, {"step " + step, "rank " + rank, "batch 7", "samples"},
                 [&] { fit(p, [](const Run&) {}); });
  }
}

TEST_F(FitTest, StepsWithALossThatIsNotFiniteAreSkippedOnAllRanksWhereThatIsAskedFor) {
  for (const int ranks : {1, 2}) {
    Plan p = plan("skip", ranks);
    p.options.non_finite_loss = NonFiniteLoss::skip;
    p.set = [](Regression& module, Recorder&) {
      module.change_loss = [](const at::Tensor& loss, const Regression::Batch& batch, Step&) {
        return batch.batch_idx() == 1 ? loss * INFINITY : loss;
      };
    };
    fit(p, [&](const Run& run) {
      const int64_t steps = 2 * ((11 + ranks - 1) / ranks);
      EXPECT_EQ(run.report.step, steps);
      EXPECT_EQ(run.recorder.count("fit.before_step"), steps - 2);
      EXPECT_TRUE(run.module.flat().isfinite().all().item<bool>());
    });
  }
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

TEST_F(FitTest, GathersInHooksOfBatchesListTheRanksThatHaveABatch) {
  for (const int ranks : {2, 3}) {
    Plan p = plan("gather", ranks);
    p.options.max_epochs = 1;
    std::mutex mutex;
    std::map<int64_t, size_t> present;
    p.set = [&](Regression& module, Recorder&) {
      module.change_loss = [&](const at::Tensor& loss, const Regression::Batch& batch, Step& step) {
        const auto all = step.all_gather(batch.batch_idx());
        const std::lock_guard lock{mutex};
        present[batch.batch_idx()] = all.size();
        return loss;
      };
    };
    fit(p, [](const Run&) {});
    for (const auto& [batch, count] : present) {
      const int64_t first = batch / ranks * ranks;
      EXPECT_EQ(static_cast<int64_t>(count), std::min<int64_t>(ranks, 11 - first)) << batch;
    }
  }
}

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
      const Loader<Point> train{points(3 * ranks)};  // a step of two rounds, and one of one
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

TEST_F(FitTest, ALossThatIsNoNumberOrNeedsNoParameterIsAnErrorThatSaysSo) {
  Plan p = plan("loss");
  p.set = [](Regression& module, Recorder&) {
    module.change_loss = [](const at::Tensor& loss, const Regression::Batch&, Step&) {
      return loss.repeat({2});
    };
  };
  expect_error(ErrorKind::usage, {"float64[2]", "one number"}, [&] { fit(p, [](const Run&) {}); });
  p.set = [](Regression& module, Recorder&) {
    module.change_loss = [](const at::Tensor& loss, const Regression::Batch&, Step&) {
      return loss.detach();
    };
  };
  expect_error(ErrorKind::usage, {"detach"}, [&] { fit(p, [](const Run&) {}); });
}

TEST_F(FitTest, RanksWithDataOfDifferentSizesAreAnErrorBeforeTheFirstStep) {
  expect_error(ErrorKind::mismatch, {"rank 0", "rank 1", "5", "6"}, [&] {
    run_threads(2, [&](Group& group) {
      Trainer trainer{plan("sizes").options, group};
      Regression module;
      trainer.fit(module, Loader<Point>{points(5 + group.rank())});
    });
  });
}

}  // namespace
}  // namespace muster::test
