// A step of Trainer::fit: exact gradients at any number of ranks, precision, clipping, and losses
// that are not finite.

#include "fit_fixture.h"

#include <muster/base/json_writer.h>
#include <muster/io/safetensors.h>

#include <ATen/ops/full.h>

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
  const auto plan_for = [&, dtype = dtype](int64_t w, int64_t batches) {
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

TEST_F(FitTest, TrueDoublePrecisionConvertsTheModuleAndItsBatches) {
  Plan p = plan("double");
  p.dtype = at::kFloat;
  p.val = 3;
  p.options.precision = Precision::f64_true;
  fit(p, [](const Run& run) {
    for (const auto& parameter : run.module.parameters()) {
      EXPECT_EQ(parameter.scalar_type(), at::kDouble);
    }
    EXPECT_TRUE(run.report.get("val/loss").has_value());
  });
}

class MixedPrecision : public FitTest, public ::testing::WithParamInterface<Precision> {};

TEST_P(MixedPrecision, ComputesInTheLowerTypeAndTrainsFloat32ParametersAlikeOnAllRanks) {
  for (const int ranks : {1, 2, 3}) {
    Plan p = plan("mixed", ranks);
    p.dtype = at::kFloat;
    p.val = p.train;  // the same points
    p.options.max_epochs = 8;
    p.options.precision = GetParam();
    const auto lower = GetParam() == Precision::bf16_mixed ? at::kBFloat16 : at::kHalf;
    p.set = [lower](Regression& module, Recorder&) {
      module.change_loss = [&module, lower](const at::Tensor& loss, const Regression::Batch& batch,
                                            Step&) {
        EXPECT_EQ(module.forward(batch.stack(&Point::x)).scalar_type(), lower);
        return loss;
      };
    };
    EXPECT_GT(difference(parameters_after(p), Regression{at::kFloat}.flat()), 0.05);
    fit(p, [&](const Run& run) {
      const auto trained = run.report.get("val/loss");
      Regression untrained{at::kFloat};
      const Loader<Point> val{points(p.val, p.dtype), {.batch_size = p.batch_size}};
      Trainer alone{plan("untrained").options, Group::self()};
      EXPECT_LT(*trained, 0.5 * *alone.validate(untrained, val).get("val/loss"));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Fit, MixedPrecision,
                         ::testing::Values(Precision::bf16_mixed, Precision::f16_mixed));

TEST_F(FitTest, AGradientTooLargeForTheScaleIsSkippedOnAllRanksAndTheScaleHalved) {
  for (const int ranks : {1, 2, 3}) {
    Plan p = plan("scaler", ranks);
    p.dtype = at::kFloat;
    p.options.precision = Precision::f16_mixed;
    p.options.max_epochs = 1;
    p.options.enable_checkpointing = true;
    const auto skipped_steps = [&] {
      std::vector<int64_t> skipped;
      fit(p, [&](const Run& run) {
        skipped.push_back(run.report.step - run.recorder.count("fit.before_step"));
        EXPECT_TRUE(run.module.flat().isfinite().all().item<bool>());
      });
      EXPECT_EQ(skipped, std::vector<int64_t>(static_cast<size_t>(ranks), skipped[0]));
      const auto state =
          load_safetensors(folder() / "scaler/checkpoints/last.ckpt/state.safetensors");
      const double scale = 65536.0 / static_cast<double>(int64_t{1} << skipped[0]);
      const std::pair<std::string, std::string> entry{"grad_scaler.scale",
                                                      "float:" + shortest(scale)};
      EXPECT_EQ(std::count(state.metadata.begin(), state.metadata.end(), entry), 1) << scale;
      return skipped[0];
    };
    p.set = [](Regression& module, Recorder&) {
      module.change_loss = [](const at::Tensor& loss, const Regression::Batch& batch, Step&) {
        // Small enough for the first scale but for one.
        return batch.batch_idx() == 7 ? loss * 1e36 : loss * 1e-3;  // finite, but not when scaled
      };
    };
    EXPECT_EQ(skipped_steps(), 1);
  }
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
      const int64_t steps = int64_t{2} * ((11 + ranks - 1) / ranks);
      EXPECT_EQ(run.report.step, steps);
      EXPECT_EQ(run.recorder.count("fit.before_step"), steps - 2);
      EXPECT_TRUE(run.module.flat().isfinite().all().item<bool>());
    });
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

TEST_F(FitTest, ParametersThatTheOptimizerDoesNotKnowKeepTheirValuesAndNoGradients) {
  Plan p = plan("part", 2);
  p.options.gradient_clip_val = 0.5;
  const auto last_bias = [](Regression& module) {
    return Optimizers{.optimizer = std::make_shared<torch::optim::SGD>(
                          std::vector<at::Tensor>{module.parameters().back()}, 0.05)};
  };
  p.set = [&](Regression& module, Recorder& recorder) {
    module.optimizers = last_bias;
    recorder.then = [&module](const std::string& event, const Progress&) {
      if (event != "fit.batch_end") return;
      for (const auto& parameter : module.parameters()) EXPECT_FALSE(parameter.grad().defined());
    };
  };
  const at::Tensor before = Regression{}.flat();
  const at::Tensor after = parameters_after(p);
  const int64_t last = before.numel() - 1;
  EXPECT_TRUE(after.slice(0, 0, last).equal(before.slice(0, 0, last)));
  EXPECT_GT(difference(after, before), 0.01);  // not held back by the others' gradients

  p.set = [](Regression& module, Recorder&) {
    module.optimizers = [](Regression&) {
      return Optimizers{.optimizer = std::make_shared<torch::optim::SGD>(
                            std::vector<at::Tensor>{at::full({1}, 1.0).requires_grad_()}, 0.05)};
    };
  };
  expect_error(ErrorKind::usage, {"none of the module's"}, [&] { fit(p, [](const Run&) {}); });
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

TEST_F(FitTest, AParameterThatALossLeavesOutIsNamedOnSeveralRanksUnlessTheStrategyAllowsIt) {
  const auto unused = [&](int ranks, Strategy strategy) {
    Plan p = plan("unused", ranks);
    p.options.strategy = strategy;
    p.set = [](Regression& module, Recorder&) {
      module.register_parameter("rare", at::full({2}, 1.0, at::kDouble));
    };
    return p;
  };
  const auto finds = Strategy::ddp_find_unused_parameters_true;
  const at::Tensor alone = parameters_after(unused(1, Strategy::ddp));
  EXPECT_TRUE(parameters_after(unused(1, finds)).equal(alone));
  const at::Tensor together = parameters_after(unused(2, finds));
  EXPECT_TRUE(together.slice(0, -2).equal(at::full({2}, 1.0, at::kDouble)));
  expect_error(ErrorKind::user,
               {"on rank 0 'rare'", "on rank 1 'rare'", "ddp_find_unused_parameters_true"},
               [&] { fit(unused(2, Strategy::ddp), [](const Run&) {}); });
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

/// Data of which no rank knows beforehand how many samples a step has.
class UnknownCounts : public FitTest, public ::testing::WithParamInterface<std::tuple<int, int>> {
 protected:
  static Loader<Point> stream(int64_t count) {
    return Loader<Point>{make_iterable([data = points(count)](const StreamContext&) {
                           return [data, i = size_t{0}]() mutable {
                             return i < data.size() ? std::optional{data[i++]} : std::nullopt;
                           };
                         }),
                         {.batch_size = 2}};
  }
  /// Every third point is skipped, and so are the whole batches 4 and 5.
  static Loader<Point> skipping(int64_t count) {
    return Loader<Point>{make_dataset(count,
                                      [data = points(count)](int64_t i, Rng&) {
                                        const bool skip = i % 3 == 1 || (i >= 8 && i < 12);
                                        return skip ? std::nullopt
                                                    : std::optional{data[static_cast<size_t>(i)]};
                                      }),
                         {.batch_size = 2}};
  }
};

TEST_P(UnknownCounts, OfAStreamTrainAsADataSetDoes) {
  const auto [ranks, accumulate] = GetParam();
  Plan p = plan("stream", ranks);
  p.shuffle = false;
  p.train = 21;
  p.options.accumulate_grad_batches = accumulate;
  const at::Tensor indexed = parameters_after(p);
  p.loader = stream(21);
  int64_t steps = 0;
  fit(p, [&](const Run& run) {
    EXPECT_LT(difference(run.module.flat(), indexed), 1e-12);
    EXPECT_EQ(run.report.epoch, 2);
    steps = run.report.step;
  });
  const int a_step = ranks * accumulate;
  EXPECT_EQ(steps, 2 * ((11 + a_step - 1) / a_step));
}

TEST_P(UnknownCounts, OfSkippedSamplesTrainAsOneProcessDoesWithAccumulatedBatches) {
  const auto [ranks, accumulate] = GetParam();
  Plan alone = plan("W1");
  alone.options.accumulate_grad_batches = int64_t{ranks} * accumulate;
  alone.loader = skipping(21);
  Plan together = plan("W", ranks);
  together.options.accumulate_grad_batches = accumulate;
  together.loader = skipping(21);
  EXPECT_LT(difference(parameters_after(alone), parameters_after(together)), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Fit, UnknownCounts,
                         ::testing::Combine(::testing::Values(1, 2, 3), ::testing::Values(1, 2)));

TEST_F(FitTest, ShardsOfDifferentLengthsTakeTheSameStepsAndEachSampleCountsOnce) {
  // Ranks of 7 and 4 batches, the last of the first one short: as one process with the batches of
  // both in each step.
  const std::vector<int64_t> counts{13, 8};
  const auto shard = make_sharded([&counts](const StreamContext& context) {
    const int64_t first = context.rank == 0 ? 0 : counts[0];
    const int64_t end = first + counts.at(static_cast<size_t>(context.rank));
    return [end, i = first]() mutable -> std::optional<IndexedSample<Point>> {
      if (i == end) return std::nullopt;
      const int64_t index = i++;
      return IndexedSample<Point>{index, points(21)[static_cast<size_t>(index)]};
    };
  });
  class BothRanks : public BatchSampler {
   public:
    [[nodiscard]] int64_t size() const override { return 7; }
    [[nodiscard]] std::vector<std::vector<int64_t>> batches(uint64_t, int64_t) const override {
      return {
          {0, 1, 13, 14}, {2, 3, 15, 16}, {4, 5, 17, 18}, {6, 7, 19, 20}, {8, 9}, {10, 11}, {12}};
    }
  };
  Plan alone = plan("W1");
  alone.loader.emplace(make_dataset(points(21)), std::make_shared<BothRanks>());
  Plan together = plan("W2", 2);
  together.loader.emplace(shard, LoaderOptions{.batch_size = 2});
  together.set = [](Regression& module, Recorder&) {
    // Ranks that have run out attend what the others' hooks gather.
    module.change_loss = [](const at::Tensor& loss, const Regression::Batch& batch, Step& step) {
      EXPECT_EQ(step.all_gather(batch.size()).size(), batch.batch_idx() < 8 ? 2U : 1U);
      return loss;
    };
  };
  const at::Tensor expected = parameters_after(alone);
  fit(together, [&](const Run& run) {
    EXPECT_EQ(run.report.step, 14);
    EXPECT_LT(difference(run.module.flat(), expected), 1e-12);
  });
}

TEST_F(FitTest, AStepWhoseSamplesAreAllSkippedIsNone) {
  for (const int ranks : {1, 2}) {
    Plan p = plan("skipped", ranks);
    p.options.max_epochs = 1;
    p.val = 3;
    p.loader.emplace(make_dataset(8,
                                  [data = points(8)](int64_t i, Rng&) {
                                    return i < 4 ? std::optional{data[static_cast<size_t>(i)]}
                                                 : std::nullopt;
                                  }),
                     LoaderOptions{.batch_size = 2});
    fit(p, [&](const Run& run) {
      EXPECT_EQ(run.report.step, ranks == 1 ? 2 : 1);
      EXPECT_EQ(run.recorder.count("validate.epoch_end"), 1);  // at the epoch's end all the same
      EXPECT_TRUE(run.report.get("val/loss").has_value());
    });
  }
}

TEST_F(FitTest, AStreamIsLimitedValidatedInBetweenAndGoneOnWith) {
  for (const int ranks : {1, 2}) {
    const auto stream = make_iterable([data = points(22)](const StreamContext&) {
      return [data, i = size_t{0}]() mutable {
        return i < data.size() ? std::optional{data[i++]} : std::nullopt;
      };
    });
    Plan p = plan("through" + std::to_string(ranks), ranks);
    p.val = 3;
    p.options.enable_checkpointing = true;
    p.options.limit_train_batches = 8;
    p.options.val_check_interval = 4;
    p.loader.emplace(stream, LoaderOptions{.batch_size = 2});
    at::Tensor through;
    fit(p, [&](const Run& run) {
      EXPECT_EQ(run.report.step, 16 / ranks);
      EXPECT_EQ(run.recorder.count("validate.epoch_end"), 4);
      through = run.module.flat();
    });
    p.options.run_dir = options("halves" + std::to_string(ranks)).run_dir;
    p.options.max_steps = 4 / ranks;
    fit(p, [](const Run&) {});
    p.options.max_steps = -1;
    p.ckpt_path = "last";
    EXPECT_TRUE(parameters_after(p).equal(through));
  }
}

TEST_F(FitTest, AFractionOfAStreamIsRefusedAndAnEmptyOneEndsTheTraining) {
  const auto stream = [](int64_t count) {
    return make_iterable([count](const StreamContext&) {
      return [data = points(count), i = size_t{0}]() mutable {
        return i < data.size() ? std::optional{data[i++]} : std::nullopt;
      };
    });
  };
  Plan p = plan("empty", 2);
  p.options.max_epochs = 1000;
  p.loader.emplace(stream(0), LoaderOptions{});
  fit(p, [](const Run& run) { EXPECT_EQ(run.report.step, 0); });
  p.loader.emplace(stream(5), LoaderOptions{});
  p.options.limit_train_batches = 0.5;
  expect_error(ErrorKind::usage, {"limit_train_batches", "whole number"},
               [&] { fit(p, [](const Run&) {}); });
}

}  // namespace
}  // namespace muster::test
