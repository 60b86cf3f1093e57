// The wrong answers that Lightning 2.6.6 was measured to give on two processes, with the right
// ones: five samples of value 0..4 in batches of 2, so the mean is 2.0.

#include "run_fixture.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <mutex>

namespace muster::test {
namespace {

class LightningAnswers : public RunTest, public ::testing::WithParamInterface<int> {};

class MeanOfBatches : public Module<Item> {
 public:
  void validation_step(const Batch& batch, Step& step) override {
    const auto numbers = batch.stack(&Item::number);
    step.log("mean", numbers.to(at::kDouble).mean());
    step.log("each", numbers);
    step.log("largest", numbers.max(), {.reduce_fx = ReduceFx::max});
    step.log("least", numbers.min(), {.reduce_fx = ReduceFx::min});
    step.log("total", numbers.sum(), {.reduce_fx = ReduceFx::sum});
  }
};

TEST_P(LightningAnswers, TheMeanOverUnevenBatchesIsThatOfTheSamplesEachCountedOnce) {
  const Loader<Item> loader{items(5), {.batch_size = 2}};
  results(GetParam(), [&](Trainer& trainer) {
    MeanOfBatches module;
    const Report report = trainer.validate(module, loader);
    EXPECT_EQ(report.samples, 5);
    EXPECT_EQ(report.get("mean"), 2.0);  // 1.667 with a padded sampler, 2.5 with a floored count
    EXPECT_EQ(report.get("each"), 2.0);
    EXPECT_EQ(report.get("largest"), 4.0);
    EXPECT_EQ(report.get("least"), 0.0);
    EXPECT_EQ(report.get("total"), 10.0);
  });
}

/// Logs `placeholder` on ranks other than 0 in the hook at the epoch's end, or nothing.
class RankZeroLogs : public Module<Item> {
 public:
  explicit RankZeroLogs(std::optional<double> placeholder) : placeholder_{placeholder} {}
  void validation_step(const Batch& /*batch*/, Step& /*step*/) override {}
  void on_validation_epoch_end(Step& step) override {
    if (step.is_global_zero()) {
      step.log("score", 0.8);
    } else if (placeholder_) {
      step.log("score", *placeholder_);
    }
  }

 private:
  std::optional<double> placeholder_;
};

TEST_P(LightningAnswers, AValueLoggedOnRankZeroAloneIsTheValueOnEveryRank) {
  const Loader<Item> loader{items(5), {.batch_size = 2}};
  results(GetParam(), [&](Trainer& trainer) {
    RankZeroLogs module{std::nullopt};
    EXPECT_EQ(trainer.validate(module, loader).get("score"), 0.8);
  });
}

TEST_F(RunTest, ALoggedZeroIsAValue) {
  const Loader<Item> loader{items(5), {.batch_size = 2}};
  results(2, [&](Trainer& trainer) {
    RankZeroLogs module{0.0};
    EXPECT_EQ(trainer.validate(module, loader).get("score"), 0.4);
  });
}

class LogsImages : public Module<Item, Item> {
 public:
  std::vector<Item> predict_step(const Batch& batch, Step& step) override {
    for (const auto& [index, item] : batch.indexed()) {
      step.log_image("picture", {at::full({4, 6}, static_cast<double>(index) / 10)},
                     {.captions = {"sample " + std::to_string(index)}});
    }
    return batch.samples();
  }
};

TEST_P(LightningAnswers, EveryRanksImagesAreInTheRunOnceEachInOrder) {
  const Loader<Item> loader{items(5), {.batch_size = 2}};
  const auto run = [&](Trainer& trainer) {
    LogsImages module;
    trainer.predict(module, loader);
  };
  const std::string json = results(GetParam(), run);
  size_t from = 0;
  for (int i = 0; i < 5; ++i) {
    const auto at = json.find("\"sample " + std::to_string(i) + "\"", from);
    ASSERT_NE(at, std::string::npos) << json;
    from = at;
  }
  EXPECT_EQ(json.find("\"sample ", from + 2), std::string::npos) << json;
  EXPECT_EQ(json, GetParam() == 1 ? json : results(1, run));
}

TEST_P(LightningAnswers, PredictionsComeInDataSetOrderOnEveryRank) {
  for (const int64_t count : {0, 1, 5}) {
    const Loader<Item> loader{items(count), {.batch_size = 2}};
    results(GetParam(), [&](Trainer& trainer) {
      LogsImages module;
      const auto predictions = trainer.predict(module, loader);
      ASSERT_EQ(static_cast<int64_t>(predictions.size()), count);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(predictions[static_cast<size_t>(i)].number, i);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LightningAnswers, ::testing::Values(1, 2, 3, 4, 7));

}  // namespace
}  // namespace muster::test
