// What must hold around an epoch: stages one after the other, failures, several loaders, hooks on
// ranks that have nothing, and answers that Lightning gets wrong.

#include "run_fixture.h"

#include <muster/train/environment.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>

#include <torch/nn/modules/batchnorm.h>

#include <mutex>
#include <numeric>

namespace muster::test {
namespace {

using Body = std::function<void(const Batch<Item>&, Step&)>;

/// A module that does what the test says.
class Doing : public Module<Item, Item> {
 public:
  Body in_step = [](const Batch&, Step&) {};
  std::function<void(Step&)> at_end = [](Step&) {};

  void validation_step(const Batch& batch, Step& step) override { in_step(batch, step); }
  void on_validation_epoch_end(Step& step) override { at_end(step); }
  std::vector<Item> predict_step(const Batch& batch, Step& step) override {
    in_step(batch, step);
    return batch.samples();
  }
};

at::Tensor shade(int64_t index) { return at::full({2, 3}, static_cast<double>(index) / 10); }

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST_F(RunTest, AStageAfterOneThatFailedHasItsOwnImagesOnly) {
  const Loader<Item> loader{items(3)};
  results(1, [&](Trainer& trainer) {
    Doing module;
    module.in_step = [](const Batch<Item>& batch, Step& step) {
      step.log_image("lost", {shade(batch.indices()[0])});
      check(batch.batch_idx() < 2, ErrorKind::user, "enough");
    };
    EXPECT_EQ(error_of([&] { trainer.predict(module, loader); }), "enough");
    EXPECT_EQ(trainer.phase(), "predict, epoch 0, loader 0, batch 2");
    module.in_step = [](const Batch<Item>& batch, Step& step) {
      step.log_image("kept", {shade(batch.indices()[0])});
    };
    trainer.predict(module, loader);
    EXPECT_EQ(trainer.phase(), "");
    trainer.validate(module, loader);
  });
  const std::string json = file("W1/results.json");
  EXPECT_EQ(count(json, "\"lost\""), 0U) << json;
  EXPECT_EQ(count(json, "\"kept\""), 6U) << json;
  EXPECT_FALSE(std::filesystem::exists(folder() / "W1/spool"));
}

TEST_F(RunTest, ThePhaseSaysWhereAStageFailed) {
  Trainer trainer{options("run"), Group::self()};
  const Loader<Item> loader{items(3), {.num_workers = 0}};
  const Loader<Item> broken{make_dataset(3, [](int64_t index, Rng& /*rng*/) {
    check(index != 1, ErrorKind::data, "unreadable");
    return Item{.number = index};
  })};
  Doing module;
  EXPECT_EQ(error_of([&] {
              trainer.validate(module, LoaderList<Item>{{&loader, &broken}});
            }),
            "sample 1: unreadable");
  EXPECT_EQ(trainer.phase(), "validate, epoch 0, loader 1, loading batch 1");
  module.at_end = [](Step& step) { step.log("", 1); };
  EXPECT_NE(error_of([&] { trainer.validate(module, loader); }).find("name"), std::string::npos);
  EXPECT_EQ(trainer.phase(), "validate, epoch 0, hooks after the batches");
}

TEST_F(RunTest, ARankThatFailsEndsTheOthersWait) {
  const Loader<Item> loader{items(4)};
  EXPECT_EQ(error_of([&] {
              run_threads(2, [&](Group& group) {
                Trainer trainer{options("run"), group};
                Doing module;
                module.in_step = [](const Batch<Item>& batch, Step& step) {
                  step.log_image("image", {at::ones({64, 64})});
                  check(batch.batch_idx() != 3, ErrorKind::user, "rank 1 fails");
                };
                trainer.validate(module, loader);
              });
            }),
            "rank 1 fails");
}

TEST_F(RunTest, WhatIsNoImageIsToldAtTheCall) {
  const Loader<Item> loader{items(2)};
  Trainer trainer{options("run"), Group::self()};
  Doing module;
  module.in_step = [](const Batch<Item>&, Step& step) {
    step.log_image("a", {at::ones({5, 2, 7})});
  };
  EXPECT_NE(error_of([&] { trainer.validate(module, loader); }).find("no image"),
            std::string::npos);
  EXPECT_EQ(trainer.phase(), "validate, epoch 0, loader 0, batch 0");
}

TEST_F(RunTest, AnImageThatCannotBeWrittenIsNamed) {
  const Loader<Item> loader{items(1)};
  Trainer trainer{options("run"), Group::self()};
  Doing module;
  module.in_step = [&](const Batch<Item>&, Step& step) {
    write_file_atomically(folder() / "run/spool", "a file where a folder must be");
    step.log_image("mine", {at::ones({2, 2})});
  };
  const std::string message = error_of([&] { trainer.validate(module, loader); });
  EXPECT_NE(message.find("the image \"mine\" of sample 0: "), std::string::npos) << message;
}

TEST_F(RunTest, NamesThatALoggerCannotTakeAreToldAtTheCall) {
  const Loader<Item> loader{items(1)};
  Trainer trainer{options("run"), Group::self()};
  const auto message_of = [&](const std::function<void(Step&)>& log) {
    Doing module;
    module.at_end = log;
    return error_of([&] { trainer.validate(module, loader); });
  };
  using namespace std::string_literals;
  for (const std::string& name :
       {""s, "epoch"s, "step"s, "_step"s, "trainer/global_step"s, "a\nb"s, "\xff"s, "a\0b"s}) {
    EXPECT_NE(message_of([&](Step& s) { s.log(name, 1.0); }).find("name"), std::string::npos)
        << name;
    EXPECT_NE(message_of([&](Step& s) { s.log(name, at::ones({})); }).find("name"),
              std::string::npos);
    EXPECT_NE(message_of([&](Step& s) { s.log_text(name, ""); }).find("name"), std::string::npos);
  }
  EXPECT_NE(message_of([&](Step& s) { s.log_table("a/b", {"n"}, {}); }).find("A-Za-z"),
            std::string::npos);
  EXPECT_NE(message_of([&](Step& s) {
              s.log_image(std::string(161, 'k'), {at::ones({2, 2})}, {.index = 0});
            }).find("161 bytes"),
            std::string::npos);
  EXPECT_EQ(message_of([&](Step& s) {
              s.log(
                  "Gr\xc3\xb6\xc3\x9f"
                  "e/\xe2\x82\xac 50%",
                  1.0);
            }),
            "no error");
}

/// Keeps what its rank has seen and logs it all at the epoch's end.
class Keeping : public Module<Item> {
 public:
  void validation_step(const Batch& batch, Step& /*step*/) override {
    for (const int64_t index : batch.indices()) {
      indices_.push_back(index);
      rows_.push_back({"sample " + std::to_string(index), static_cast<double>(index)});
    }
  }
  void on_validation_epoch_end(Step& step) override {
    step.log_table("kept", {"name", "n"}, rows_, {.indices = indices_});
    for (const int64_t index : indices_) {
      step.log_image("b", {shade(index)}, {.index = index});
      step.log_image("a", {shade(index)}, {.index = index});
      step.log("value of " + std::to_string(index), static_cast<double>(index));
    }
    const int64_t all = std::accumulate(indices_.begin(), indices_.end(), int64_t{0});
    const auto sums = step.all_gather(all);
    step.log_image("sum", {shade(std::accumulate(sums.begin(), sums.end(), int64_t{0}))},
                   {.index = 0});
  }

 private:
  std::vector<int64_t> indices_;
  std::vector<std::vector<Cell>> rows_;
};

TEST_F(RunTest, AHookAtTheEndGivesTheSameBytesAtEveryNumberOfRanks) {
  const Loader<Item> loader{items(7), {.batch_size = 2}};
  const auto run = [&](Trainer& trainer) {
    Keeping module;
    trainer.validate(module, loader);
  };
  const std::string one = results(1, run);
  EXPECT_EQ(count(one, "\"sum\""), 1U);
  for (const int ranks : {2, 3, 6}) {
    EXPECT_EQ(results(ranks, run), one) << ranks;
    EXPECT_EQ(file("W" + std::to_string(ranks) + "/tables/validate-kept.csv"),
              file("W1/tables/validate-kept.csv"));
  }
}

TEST_F(RunTest, SeveralLoadersMixNeitherSamplesNorFiles) {
  const Loader<Item> loader{items(3), {.batch_size = 2}};
  const auto run = [&](Trainer& trainer) {
    Doing module;
    module.in_step = [](const Batch<Item>& batch, Step& step) {
      const auto own = static_cast<double>(step.dataloader_idx());
      step.log("value", own);
      std::vector<std::vector<Cell>> rows;
      for (const int64_t index : batch.indices()) {
        step.log_image("image", {shade(index + 3 * step.dataloader_idx())});
        step.save_prediction(index, "same", shade(index + 3 * step.dataloader_idx()));
        rows.push_back({own});
      }
      step.log_table("table", {"own"}, rows);
    };
    trainer.predict(module, LoaderList<Item>{{&loader, &loader}});
  };
  const std::string json = results(1, run);
  EXPECT_EQ(count(json, "\"image/dataloader_idx_1\""), 3U) << json;
  EXPECT_NE(json.find("\"value/dataloader_idx_1\": 1"), std::string::npos);
  EXPECT_NE(json.find("\"table-dataloader_idx_1/own\": 1"), std::string::npos);
  EXPECT_NE(file("W1/predictions/000002-dataloader_idx_0-same.png"),
            file("W1/predictions/000002-dataloader_idx_1-same.png"));
  EXPECT_EQ(results(3, run), json);
}

TEST_F(RunTest, AnEvaluationLeavesModesAndRandomNumbersAsTheyWere) {
  const Loader<Item> loader{items(2)};
  Trainer trainer{options("run"), Group::self()};
  Doing module;
  auto frozen = module.register_module("frozen", torch::nn::BatchNorm1d{2});
  auto trained = module.register_module("trained", torch::nn::BatchNorm1d{2});
  frozen->eval();
  module.in_step = [&](const Batch<Item>&, Step&) {
    EXPECT_FALSE(module.is_training());
    EXPECT_FALSE(trained->is_training());
    static_cast<void>(at::rand({3}));
  };
  seed_everything(5);
  const auto expected = at::rand({4});
  seed_everything(5);
  trainer.validate(module, loader);
  EXPECT_TRUE(at::rand({4}).equal(expected));
  EXPECT_TRUE(module.is_training());
  EXPECT_TRUE(trained->is_training());
  EXPECT_FALSE(frozen->is_training());
  module.eval();
  trainer.predict(module, loader);
  EXPECT_FALSE(module.is_training());
}

TEST_F(RunTest, TheTrainersSeedIsThatOfLoadersWithoutOneOfTheirOwn) {
  const auto dataset =
      make_dataset(16, [](int64_t /*index*/, Rng& rng) { return Item{.number = rng.below(1000)}; });
  const auto numbers = [&](int64_t seed, std::optional<uint64_t> own) {
    auto given = options("run");
    given.seed = seed;
    Trainer trainer{given, Group::self()};
    Doing module;
    std::vector<int64_t> seen;
    const Loader<Item> loader{dataset, {.shuffle = true, .seed = own}};
    module.in_step = [&](const Batch<Item>& batch, Step&) {
      seen.push_back(batch.indices()[0] * 1000 + batch.samples()[0].number);
    };
    trainer.validate(module, loader);
    return seen;
  };
  EXPECT_EQ(numbers(0, {}), numbers(0, 0));
  EXPECT_EQ(numbers(3, {}), numbers(0, 3));
  EXPECT_NE(numbers(3, {}), numbers(4, {}));
  EXPECT_EQ(numbers(3, 8), numbers(4, 8));
}

TEST_F(RunTest, MoreDevicesThanRanksAreAnError) {
  auto given = options("run");
  given.devices = 2;
  EXPECT_NE(error_of([&] {
              Trainer{given, Group::self()};
            }).find("devices is 2"),
            std::string::npos);
}

TEST_F(RunTest, AFolderThatAnotherCommandWritesToIsRefusedUntilThatHasEnded) {
  const Loader<Item> loader{items(1)};
  Trainer first{options("run"), Group::self()};
  Trainer second{options("run"), Group::self()};
  Doing other;
  Doing module;
  module.in_step = [&](const Batch<Item>&, Step&) {
    const std::string message = error_of([&] { second.validate(other, loader); });
    EXPECT_NE(message.find("another command writes"), std::string::npos) << message;
  };
  first.validate(module, loader);
  EXPECT_EQ(error_of([&] { second.validate(other, loader); }), "no error");
}

TEST_F(RunTest, ABrokenResultsFileIsToldBeforeAnythingIsComputed) {
  write_file_atomically(folder() / "run/results.json", "{\"validate\": ");
  const Loader<Item> loader{items(1)};
  Trainer trainer{options("run"), Group::self()};
  Doing module;
  module.in_step = [&](const Batch<Item>&, Step&) { FAIL() << "a step has run"; };
  const std::string message = error_of([&] { trainer.predict(module, loader); });
  EXPECT_NE(message.find("results.json"), std::string::npos) << message;
}

TEST_F(RunTest, ARunFolderStaysTheSameWhereTheProgramChangesItsOwn) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder());
  TrainerOptions relative = options("");
  relative.run_dir = "relative";
  const Loader<Item> loader{items(1)};
  {
    Trainer trainer{relative, Group::self()};
    std::filesystem::current_path("/");
    Doing module;
    trainer.validate(module, loader);
  }
  std::filesystem::current_path(before);
  EXPECT_FALSE(file("relative/results.json").empty());
}

TEST_F(RunTest, ASecondTrainerTakesTheFirstOnesGroup) {
  const Loader<Item> loader{items(5)};
  run_threads(2, [&](Group& group) {
    Trainer first{options("one"), group};
    Trainer second{options("two"), first.group()};
    Doing module;
    module.in_step = [](const Batch<Item>& batch, Step& step) {
      step.log_image("image", {shade(batch.indices()[0])});
    };
    first.predict(module, loader);
    second.predict(module, loader);
    first.validate(module, loader);
    group.finish();
  });
  EXPECT_EQ(count(file("one/results.json"), "\"image\""), 10U);
  EXPECT_EQ(count(file("two/results.json"), "\"image\""), 5U);
}

// The wrong answers that Lightning 2.6.6 was measured to give on two processes, with the right
// ones: five samples of value 0..4 in batches of 2, so the mean is 2.0.

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
