// What users of other trainers have complained of, one test a complaint: docs/complaints.md has the
// list. Those of processes are in tests/dist/complaints_test.cpp.

#include "complaints.h"

#include <muster/metrics/classification.h>
#include <muster/metrics/mean_average_precision.h>
#include <muster/metrics/ranking.h>
#include <muster/metrics/table_metric.h>

#include <chrono>
#include <cmath>
#include <deque>

namespace muster::test {
namespace {

using Batch = Doing::Batch;

// Counting samples

TEST_F(Complaints, I1EverySampleIsEvaluatedOnceAtAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    EXPECT_EQ(seen(ranks, numbers(5)), first_numbers(5)) << ranks;
    EXPECT_EQ(seen(ranks, numbers(5, {.batch_size = 2, .shuffle = true})), first_numbers(5));
  }
}

TEST_F(Complaints, I2AValidationDoesNotDependOnRanksNorHangsWhereTheyHaveUnevenBatches) {
  everywhere([](Runner& runner) {
    Doing module;
    module.in_batch = [](const Batch& batch, Step& step) {
      log_mean(batch, step);
      const int64_t first = batch.batch_idx() / step.world_size() * step.world_size();
      EXPECT_EQ(step.all_gather(batch.batch_idx()).size(),
                static_cast<size_t>(std::min<int64_t>(step.world_size(), 5 - first)));
    };
    EXPECT_EQ(runner.validate(module, numbers(5)).get("mean"), 2.0);
  });
}

TEST_F(Complaints, I3ATestNeedsNoSingleDeviceAndNoWarning) {
  ::testing::internal::CaptureStderr();
  everywhere(
      [](Runner& runner) {
        Doing module;
        module.in_batch = log_mean;
        EXPECT_EQ(runner.test(module, numbers(5, {.batch_size = 2})).get("mean"), 2.0);
      },
      {7});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Complaints, I4ATrainingWithUnevenRanksEndsAndWeighsEachSampleOnce) {
  const auto expect_weight = [&](int ranks, const Loader<Number>& loader, double expected) {
    on_ranks(ranks, training("fit"), [&](Runner& runner) {
      Doing module;
      runner.fit(module, loader);
      EXPECT_EQ(module.weight, expected) << ranks << " ranks";
    });
  };
  // Batches {0, 1}, {2, 3} and {4}; on three ranks they make one step.
  const auto loader = numbers(5, {.batch_size = 2});
  expect_weight(1, loader, -0.5 - 2.5 - 4.0);
  expect_weight(2, loader, -1.5 - 4.0);
  expect_weight(3, loader, -2.0);
  expect_weight(4, loader, -2.0);
  // Ranks of 7 and 4 batches, 0..6 and 7..10.
  expect_weight(2, shards({7, 4}), -(3.5 + 4.5 + 5.5 + 6.5 + 4 + 5 + 6));
}

TEST_F(Complaints, I5StreamsOfSevenAndFourBatchesAreValidatedWithTheirExactCount) {
  for (const std::vector<int64_t>& counts : {std::vector<int64_t>{13, 8}, {14, 7}, {0, 21}}) {
    on_ranks(2, options("streams"), [&](Runner& runner) {
      Doing module;
      module.in_batch = [](const Batch& batch, Step& step) {
        log_mean(batch, step);
        step.log("count", static_cast<double>(batch.size()), {.reduce_fx = ReduceFx::sum});
      };
      const Report report = runner.validate(module, shards(counts, {.batch_size = 2}));
      EXPECT_EQ(report.samples, 21);
      EXPECT_EQ(report.get("count"), 21.0);
      EXPECT_EQ(report.get("mean"), 10.0);
    });
  }
}

/// An order of one's own, which may repeat.
class Listed : public Sampler {
 public:
  explicit Listed(std::vector<int64_t> order) : order_{std::move(order)} {}
  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(order_.size()); }
  [[nodiscard]] std::vector<int64_t> order(uint64_t, int64_t) const override { return order_; }

 private:
  std::vector<int64_t> order_;
};

class ListedBatches : public BatchSampler {
 public:
  [[nodiscard]] int64_t size() const override { return 3; }
  [[nodiscard]] std::vector<std::vector<int64_t>> batches(uint64_t, int64_t) const override {
    return {{4, 3}, {0}, {2, 1}};
  }
};

std::shared_ptr<const Dataset<Number>> dataset(int64_t count) {
  return make_dataset(count, [](int64_t index, Rng&) { return Number{.number = index}; });
}

TEST_F(Complaints, I6AMetricThatGetsASampleTwiceNamesItOnEveryRank) {
  const Loader<Number> repeating{dataset(5), std::make_shared<Listed>(Listed{{0, 3, 1, 2, 3}})};
  for (const int ranks : {1, 2, 4}) {  // on several, two of them have it
    const auto messages = errors(ranks, ErrorKind::usage, [&](Runner& runner) {
      Doing module;
      TableMetric rows{{{.name = "number"}}};
      module.metrics.emplace_back("rows", &rows);
      module.in_batch = [&](const Batch& batch, Step&) { rows.update(batch.indices()[0], {1.0}); };
      runner.validate(module, repeating);
    });
    for (const auto& message : messages) EXPECT_TRUE(has(message, "sample 3"));
  }
}

TEST_F(Complaints, I7AMetricOfDetectionsHasAsManyPicturesAsTheDataSet) {
  everywhere([](Runner& runner) {
    Doing module;
    MeanAveragePrecision precision;
    TableMetric rows{{{.name = "boxes"}}};
    module.metrics.emplace_back("map", &precision);
    module.metrics.emplace_back("pictures", &rows);
    module.in_batch = [&](const Batch& batch, Step&) {
      for (const auto& [index, sample] : batch.indexed()) {
        const double shift = index % 3 == 0 ? 20.0 : 0.0;  // every third box is wrong
        const auto box = at::tensor({0.0, 0.0, 10.0, 10.0}, at::kDouble).view({1, 4});
        const auto label = at::zeros({1}, at::kLong);
        precision.update(index, {box + shift, at::full({1}, 0.5), label}, {box, label});
        rows.update(index, {1.0});
      }
    };
    const Report report = runner.validate(module, numbers(21, {.batch_size = 2}));
    EXPECT_EQ(report.samples, 21);
    EXPECT_GT(report.get("map/map").value_or(0), 0.4);
    EXPECT_LT(report.get("map/map").value_or(1), 0.7);
  });
  const std::string table = read_file(folder("W4") / "tables/validate-pictures.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 21);
}

TEST_F(Complaints, I8AnySamplerIsDealtWholeAlsoWhereRanksOutnumberBatches) {
  const Loader<Number> reversed{dataset(5), std::make_shared<Listed>(Listed{{4, 3, 2, 1, 0}}),
                                LoaderOptions{.batch_size = 2}};
  const Loader<Number> batches{dataset(5), std::make_shared<ListedBatches>()};
  for (int ranks = 1; ranks <= 8; ++ranks) {
    EXPECT_EQ(seen(ranks, reversed), first_numbers(5)) << ranks;
    EXPECT_EQ(seen(ranks, batches), first_numbers(5)) << ranks;
  }
}

TEST_F(Complaints, I9ADataSetSmallerThanTheRanksIsEvaluatedAndEmptyRanksTakePart) {
  for (const int64_t count : {0, 1}) {
    everywhere([count](Runner& runner) {
      Doing module;
      module.in_batch = [](const Batch& batch, Step& step) {
        EXPECT_EQ(step.all_gather(step.rank()), std::vector<int>{0});
        step.log_image("image", {at::full({2, 2}, 0.5)});
        log_mean(batch, step);
      };
      module.at_end = [](Step& step) {
        EXPECT_EQ(step.all_gather(step.rank()).size(), static_cast<size_t>(step.world_size()));
      };
      EXPECT_EQ(runner.validate(module, numbers(count)).samples, count);
      EXPECT_EQ(runner.predict(module, numbers(count)), first_numbers(count));
    });
  }
}

TEST_F(Complaints, I10TenThousandSamplesOnThreeRanksAreTenThousandPredictions) {
  on_ranks(3, options("many"), [](Runner& runner) {
    Doing module;
    const auto loader = numbers(10'000, {.batch_size = 128});
    EXPECT_EQ(runner.predict(module, loader), first_numbers(10'000));
    EXPECT_EQ(runner.validate(module, loader).samples, 10'000);
  });
}

TEST_F(Complaints, I11NoTailIsCutOrKeptWronglyAtAnySizeBatchAndNumberOfRanks) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    on_ranks(ranks, options("tails"), [&](Runner& runner) {
      for (int64_t count = 0; count <= 6; ++count) {
        for (const int64_t batch_size : {2, 3}) {
          for (const bool drop_last : {false, true}) {
            Doing module;
            int64_t mine = 0;
            module.in_batch = [&](const Batch& batch, Step& step) {
              mine += batch.size();
              // What is gathered may have any first dimension.
              const auto shapes = step.all_gather(at::ones({batch.batch_idx() % 3, 2}));
              EXPECT_EQ(shapes[0].dim(), 2);
            };
            const auto out = runner.predict(
                module, numbers(count, {.batch_size = batch_size, .drop_last = drop_last}));
            const int64_t kept = drop_last ? count / batch_size * batch_size : count;
            EXPECT_EQ(out, first_numbers(kept)) << count << " by " << batch_size;
            const auto all = gather(runner.group(), mine);
            EXPECT_EQ(std::accumulate(all.begin(), all.end(), int64_t{0}), kept);
          }
        }
      }
    });
  }
}

TEST_F(Complaints, I12AMeanDividesByTheSamplesAndNotByAPaddedTotal) {
  everywhere([](Runner& runner) {
    Doing module;
    Mean mean;
    module.metrics.emplace_back("metric", &mean);
    module.in_batch = [&](const Batch& batch, Step& step) {
      for (const auto& sample : batch.samples()) mean.update(static_cast<double>(sample.number));
      log_mean(batch, step);
      step.log("one", at::ones({batch.size()}), {.reduce_fx = ReduceFx::sum});
    };
    const Report report = runner.validate(module, numbers(10));  // W = 4 would be padded to 12
    EXPECT_EQ(report.get("metric"), 4.5);
    EXPECT_EQ(report.get("mean"), 4.5);
    EXPECT_EQ(report.get("one"), 10.0);
  });
}

// Weights and reductions

TEST_F(Complaints, I13AMeanOverRanksOfThreeAndTwoSamplesIsExactAndNotInflatedOnSixteen) {
  everywhere(
      [](Runner& runner) {
        Doing module;
        module.in_batch = [](const Batch& batch, Step& step) {
          const auto all = batch.stack(&Number::number);
          step.log("float", all.to(at::kFloat).mean());
          step.log("double", all.to(at::kDouble).mean());
          step.log("each", all);
          step.log("constant", 1.0);
        };
        const Report report = runner.validate(module, numbers(5, {.batch_size = 2}));
        for (const auto* name : {"float", "double", "each"}) {
          EXPECT_EQ(report.get(name), 2.0) << name;
        }
        EXPECT_EQ(report.get("constant"), 1.0);
      },
      {16});
}

TEST_F(Complaints, I14AMeanIsThatOfTheGatheredLossesNotOfTheRanksMeans) {
  everywhere([](Runner& runner) {
    Doing module;
    std::vector<double> losses;
    module.in_batch = [&](const Batch& batch, Step& step) {
      for (const auto& sample : batch.samples()) {
        losses.push_back(static_cast<double>(sample.number * sample.number));
      }
      step.log("loss", batch.stack(&Number::number).square().to(at::kDouble).mean());
    };
    double mean = 0;
    module.at_end = [&](Step& step) {
      for (const auto& part : step.all_gather(losses)) {
        mean += std::accumulate(part.begin(), part.end(), 0.0) / 5;
      }
    };
    const Report report = runner.validate(module, numbers(5, {.batch_size = 2}));
    EXPECT_EQ(report.get("loss"), 6.0);
    EXPECT_NEAR(mean, 6.0, 1e-12);
  });
}

TEST_F(Complaints, I15ASmallLastBatchWeighsAsManySamplesAsItHas) {
  everywhere([](Runner& runner) {
    Doing module;
    module.in_batch = [](const Batch& batch, Step& step) {
      step.log("value", std::pow(2.0, static_cast<double>(batch.batch_idx())));
    };
    const Report report = runner.validate(module, numbers(522, {.batch_size = 256}));
    EXPECT_EQ(report.get("value"), (256 * 1.0 + 256 * 2.0 + 10 * 4.0) / 522);
  });
}

TEST_F(Complaints, I16AValueWeighsTheSamplesOfItsBatchWhateverTensorsLookLike) {
  const std::vector<Number> samples{{1, at::ones({7})}, {1, at::ones({7})}, {4, at::ones({7})}};
  everywhere([&](Runner& runner) {
    Doing module;
    module.in_batch = [](const Batch& batch, Step& step) {
      const auto value = static_cast<double>(batch.samples()[0].number);
      step.log("value", value);
      step.log("tensor", batch.samples()[0].odd.sum() * 0 + value);
      step.log("by_hand", value, {.batch_size = 3});
    };
    const Report report = runner.validate(module, Loader<Number>{samples, {.batch_size = 2}});
    EXPECT_EQ(report.get("value"), 2.0);
    EXPECT_EQ(report.get("tensor"), 2.0);
    EXPECT_EQ(report.get("by_hand"), 2.5);
  });
}

TEST_F(Complaints, I17AValueIsReducedAsItsNameSaysAndTwoReductionsOfOneNameAreAnError) {
  everywhere([](Runner& runner) {
    Doing module;
    module.in_batch = [](const Batch& batch, Step& step) {
      const auto value = static_cast<double>(batch.samples()[0].number);
      step.log("mean", value);
      step.log("sum", value, {.reduce_fx = ReduceFx::sum});
      step.log("min", value, {.reduce_fx = ReduceFx::min});
      step.log("max", value, {.reduce_fx = ReduceFx::max});
    };
    const Report report = runner.validate(module, numbers(5));
    EXPECT_EQ(report.get("mean"), 2.0);
    EXPECT_EQ(report.get("sum"), 10.0);
    EXPECT_EQ(report.get("min"), 0.0);
    EXPECT_EQ(report.get("max"), 4.0);
  });
  const auto messages = errors(2, ErrorKind::usage, [](Runner& runner) {
    Doing module;
    module.at_end = [](Step& step) {
      step.log("x", 1.0, {.reduce_fx = step.is_global_zero() ? ReduceFx::sum : ReduceFx::mean});
    };
    runner.validate(module, numbers(2));
  });
  for (const auto& message : messages) EXPECT_TRUE(has(message, "x"));
}

TEST_F(Complaints, I18MacroF1IsThatOfTheDataSetAndNotAMeanOfBatches) {
  const auto f1 = [] {
    return F1Score{{.task = Task::multiclass, .num_classes = 3, .average = Average::macro}};
  };
  F1Score whole = f1();
  const auto all = at::tensor(first_numbers(11), at::kLong);
  whole.update(all.mul(all).remainder(3), all.remainder(3));
  const auto expected = whole.compute().values.at(0).second;
  everywhere([&](Runner& runner) {
    Doing module;
    F1Score score = f1();
    module.metrics.emplace_back("f1", &score);
    module.in_batch = [&](const Batch& batch, Step& step) {
      const auto number = batch.stack(&Number::number);
      score.update(number.mul(number).remainder(3), number.remainder(3));
      F1Score of_batch = f1();
      of_batch.update(number.mul(number).remainder(3), number.remainder(3));
      step.log("mean_of_batches", *of_batch.compute().values.at(0).second);
    };
    const Report report = runner.validate(module, numbers(11, {.batch_size = 2}));
    EXPECT_EQ(report.get("f1"), expected);
    EXPECT_NE(report.get("f1"), report.get("mean_of_batches"));
  });
}

TEST_F(Complaints, I19AWrongBatchSizeChangesNoMetricWithAState) {
  std::optional<double> first;
  for (const int64_t batch_size : {2, 3000}) {
    everywhere([&](Runner& runner) {
      Doing module;
      AUROC area;
      module.metrics.emplace_back("area", &area);
      module.in_batch = [&](const Batch& batch, Step& step) {
        const auto number = batch.stack(&Number::number);
        area.update(number.mul(5).remainder(7).to(at::kFloat).div(7), number.remainder(2));
        step.log("mean", 1.0, {.batch_size = batch_size * step.world_size()});
      };
      const Report report = runner.validate(module, numbers(11, {.batch_size = 2}));
      ASSERT_TRUE(report.get("area"));
      if (runner.group().rank() != 0) return;
      if (!first) first = report.get("area");
      EXPECT_EQ(report.get("area"), first);
      EXPECT_EQ(report.get("mean"), 1.0);
    });
  }
}

TEST_F(Complaints, I20StatesStayExactWhateverTheModelComputesIn) {
  constexpr int64_t large = 90'170'814;  // no float
  for (const Precision precision :
       {Precision::f32_true, Precision::bf16_mixed, Precision::f16_mixed, Precision::f64_true}) {
    for (const int ranks : {1, 3}) {
      TrainerOptions in = options("precision");
      in.precision = precision;
      on_ranks(ranks, in, [&](Runner& runner) {
        Doing module;
        Sum sum;
        module.metrics.emplace_back("sum", &sum);
        module.in_batch = [&](const Batch& batch, Step& step) {
          sum.update(static_cast<double>(large));
          step.log("tensor", at::full({}, large, at::kLong));
          step.log("mean", static_cast<double>(large + batch.samples()[0].number));
        };
        const Report report = runner.validate(module, numbers(3));
        EXPECT_EQ(report.get("sum"), 3.0 * large);
        EXPECT_EQ(report.get("tensor"), large);
        EXPECT_EQ(report.get("mean"), large + 1.0);
      });
    }
  }
}

}  // namespace
}  // namespace muster::test
