// The rest of the complaints that are no matter of processes: values of rank 0 alone, hangs,
// predictions, images, files. docs/complaints.md has the list.

#include "complaints.h"

#include <muster/metrics/ranking.h>
#include <muster/metrics/table_metric.h>

#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using Batch = Doing::Batch;

// Rank 0 only, placeholders, hangs

TEST_F(Complaints, I21AValueOfRankZeroAloneIsSeenByCallbacksOnEveryRank) {
  const std::vector<double> scores{3, 2, 1, 5, 5, 5, 5, 5, 5};
  const auto rank_zero = [&](const Step& step) -> std::optional<double> {
    if (step.rank() != 0) return std::nullopt;
    return scores.at(static_cast<size_t>(step.epoch()));
  };
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const Ending end = ending(ranks, "{epoch}", rank_zero);
    EXPECT_EQ(end.best_score, 1.0);
    EXPECT_TRUE(has(end.best, "epoch=2.ckpt"));
    EXPECT_EQ(end.stopped_epoch, 5);
    EXPECT_NEAR(end.rate, 0.1, 1e-12);
  }
}

TEST_F(Complaints, I22RanksWithOtherValuesAgreeOnTheBestCheckpoint) {
  // Of rank 0 alone epoch 4 would be best, of rank 1 alone epoch 0.
  const Ending end = ending(2, "{epoch}", [](const Step& step) -> std::optional<double> {
    const auto epoch = static_cast<double>(step.epoch());
    return step.rank() == 0 ? (epoch - 4) * (epoch - 4) : 5 * epoch;
  });
  EXPECT_TRUE(has(end.best, "epoch=1.ckpt"));
  EXPECT_EQ(end.best_score, 7.0);
}

TEST_F(Complaints, I23NamesThatOnlySomeRanksLogAreAbsentElsewhereAndNotZero) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    on_ranks(ranks, options("names"), [&](Runner& runner) {
      Doing module;
      module.in_batch = [](const Batch& batch, Step& step) {
        const int64_t number = batch.samples()[0].number;
        step.log("batch/" + std::to_string(number), static_cast<double>(number));
      };
      module.at_end = [](Step& step) {
        step.log("rank/" + std::to_string(step.rank()), 0.8);
        if (step.is_global_zero()) step.log("zero", 0.0), step.log("first", 0.8);
      };
      const Report report = runner.validate(module, numbers(5));
      for (int i = 0; i < 5; ++i) EXPECT_EQ(report.get("batch/" + std::to_string(i)), i);
      for (int i = 0; i < 4; ++i) {
        const auto expected = i < ranks ? std::optional{0.8} : std::nullopt;
        EXPECT_EQ(report.get("rank/" + std::to_string(i)), expected);
      }
      EXPECT_EQ(report.get("first"), 0.8);
      EXPECT_EQ(report.get("zero"), 0.0);
    });
  }
}

TEST_F(Complaints, I24AGatherOnRankZeroAloneIsAnErrorWithEveryRanksPlaceInAnyHook) {
  using Guard = std::function<void(Step&)>;
  const Guard guarded = [](Step& step) {
    if (step.is_global_zero()) step.all_gather(step.rank());
  };
  const auto in_batch = [&](Doing& module) {
    module.in_batch = [&](const Batch& batch, Step& step) {
      if (batch.batch_idx() < 2) guarded(step);
    };
  };
  const std::vector<std::function<void(Doing&)>> places{
      [&](Doing& module) { module.at_start = guarded; }, in_batch,
      [&](Doing& module) { module.at_end = guarded; }};
  for (const auto& place : places) {
    for (const bool predicts : {false, true}) {
      const auto start = std::chrono::steady_clock::now();
      const auto messages = errors(3, ErrorKind::mismatch, [&](Runner& runner) {
        Doing module;
        place(module);
        if (predicts) runner.predict(module, numbers(5));
        if (!predicts) runner.validate(module, numbers(5));
      });
      for (const auto& message : messages) {
        EXPECT_EQ(message, messages[0]);
        EXPECT_TRUE(
            has(message, predicts ? "rank 0: predict epoch 0" : "rank 0: validate epoch 0"));
        EXPECT_TRUE(has(message, "all_gather at tests/property/complaints_fit_test.cpp:"));
        for (const auto* other : {"\nrank 1: ", "\nrank 2: "}) EXPECT_TRUE(has(message, other));
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{5});
    }
  }
}

TEST_F(Complaints, I28AMetricThatNoRankOrOnlySomeUpdateHasADefinedValueAlsoAfterASanityCheck) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    on_ranks(ranks, options("metrics"), [&](Runner& runner) {
      Doing module;
      AUROC all;
      AUROC some;
      AUROC none;
      module.metrics = {{"all", &all}, {"some", &some}, {"none", &none}};
      module.in_batch = [&](const Batch& batch, Step&) {
        const auto number = batch.stack(&Number::number);
        const auto score = number.to(at::kDouble).div(10);
        all.update(score, number.remainder(2));
        if (batch.batch_idx() < 2) some.update(score, number.remainder(2));
      };
      const Report report = runner.validate(module, numbers(4));
      EXPECT_EQ(report.get("all"), 0.75);
      EXPECT_EQ(report.get("some"), 1.0);
      EXPECT_EQ(report.get("none"), std::nullopt);
    });
    // One batch of a sanity check, which no rank but the first has.
    TrainerOptions sane = training("sane");
    sane.num_sanity_val_steps = 1;
    on_ranks(ranks, sane, [&](Runner& runner) {
      Doing module;
      AUROC area;
      module.metrics = {{"area", &area}};
      module.in_batch = [&](const Batch& batch, Step&) {
        const auto number = batch.stack(&Number::number);
        area.update(number.to(at::kDouble).div(10), number.remainder(2));
      };
      const auto val = numbers(4);
      EXPECT_EQ(runner.fit(module, numbers(2), &val).get("area"), 0.75);
    });
  }
}

TEST_F(Complaints, I29UnevenListsTravelInOneSyncWhateverTheNumberOfMetrics) {
  const auto rounds = [&](int metrics, int64_t samples) {
    std::map<int, Group::Counts> of_rank;
    std::mutex mutex;
    on_ranks(3, options("lists"), [&](Runner& runner) {
      Doing module;
      std::vector<TableMetric> rows(static_cast<size_t>(metrics), TableMetric{{{.name = "x"}}});
      for (size_t i = 0; i < rows.size(); ++i) {
        module.metrics.emplace_back("m" + std::to_string(i), &rows[i]);
      }
      module.in_batch = [&](const Batch& batch, Step& step) {
        for (const int64_t index : batch.indices()) {
          for (size_t i = 0; i < rows.size(); ++i) {
            if (step.rank() == 0 || i == 0) rows[i].update(index, {1.0});
          }
        }
      };
      const auto before = runner.group().counts();
      const Report report = runner.validate(module, numbers(samples));
      EXPECT_EQ(report.get("m0/x"), 1.0);
      const auto after = runner.group().counts();
      const std::lock_guard lock{mutex};
      of_rank[runner.group().rank()] = {after.header_rounds - before.header_rounds,
                                        after.payload_rounds - before.payload_rounds, 0};
    });
    return std::pair{of_rank[2].header_rounds, of_rank[2].payload_rounds};
  };
  const auto few = rounds(1, 4);
  EXPECT_EQ(rounds(20, 100), few);
  EXPECT_LE(few.second, 2);
}

TEST_F(Complaints, I30AProgressBarOfOneRankCallsNoCollective) {
  ::testing::internal::CaptureStderr();
  std::vector<int64_t> header_rounds;
  for (const bool shown : {false, true}) {
    run_threads(2, [&](Group& group) {
      TrainerOptions mine = training("bar" + std::to_string(static_cast<int>(shown)), 2);
      mine.enable_progress_bar = shown && group.rank() == 0;
      Runner runner{mine, group};
      Doing module;
      AUROC area;
      module.metrics = {{"area", &area}};
      module.in_batch = [&](const Batch& batch, Step& step) {
        const auto number = batch.stack(&Number::number);
        area.update(number.to(at::kDouble).div(10), number.remainder(2));
        step.log("mean", number.to(at::kDouble).mean(), {.prog_bar = true});
      };
      module.in_training = [](const Batch&, Step& step) {
        step.log("loss", 1.0, {.prog_bar = true});
      };
      const auto val = numbers(5);
      EXPECT_EQ(runner.fit(module, numbers(5), &val).get("mean"), 2.0);
      if (group.rank() == 1) header_rounds.push_back(group.counts().header_rounds);
      group.finish();
    });
  }
  EXPECT_TRUE(has(::testing::internal::GetCapturedStderr(), "mean"));
  EXPECT_EQ(header_rounds.at(0), header_rounds.at(1));
}

TEST_F(Complaints, I33StoppingEarlyIsAtOneStepThoughRanksSeeOtherLosses) {
  // Rank 0 alone would go on for all epochs, rank 1 alone would stop after the fourth.
  const Ending end = ending(2, "{epoch}", [](const Step& step) -> std::optional<double> {
    const auto epoch = static_cast<double>(step.epoch());
    return step.rank() == 0 ? -epoch : (epoch < 3 ? -epoch : 3 * epoch);
  });
  EXPECT_EQ(end.stopped_epoch, 5);
  EXPECT_EQ(end.best_score, -2.0);
  EXPECT_EQ(end.step, 6 * 2);
}

/// Notes the steps at which validations begin.
class Validations : public Callback {
 public:
  std::vector<int64_t> steps{};
  void on_start(const Progress& progress) override {
    if (progress.stage == Stage::validate) steps.push_back(progress.global_step);
  }
};

TEST_F(Complaints, I34RanksOfUnevenStreamsEnterEachValidationTogether) {
  TrainerOptions often = training("often");
  often.val_check_interval = 4;
  std::mutex mutex;
  std::vector<std::vector<int64_t>> steps;
  on_ranks(2, often, [&](Runner& runner) {
    Doing module;
    module.in_training = [](const Batch&, Step& step) { EXPECT_EQ(step.stage(), Stage::fit); };
    module.at_start = [](Step& step) {
      EXPECT_EQ(step.all_gather(step.global_step()),
                (std::vector<int64_t>{step.global_step(), step.global_step()}));
    };
    const auto validations = std::make_shared<Validations>();
    runner.add_callback(validations);
    const auto val = numbers(3);
    EXPECT_EQ(runner.fit(module, shards({7, 4}), &val).step, 7);
    const std::lock_guard lock{mutex};
    steps.push_back(validations->steps);
  });
  EXPECT_GE(steps.at(0).size(), 3U);
  EXPECT_EQ(steps.at(0), steps.at(1));
}

// Predictions and images

TEST_F(Complaints, I35PredictionsComeInOrderToAllToRankZeroToNoneOrFromFilesOfTheRanks) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const auto loader = numbers(7, {.batch_size = 2});
    std::vector<fs::path> files;
    on_ranks(ranks, options(name_of(ranks)), [&](Runner& runner) {
      const bool first = runner.group().rank() == 0;
      const std::vector<int64_t> nothing;
      const Doing module;
      EXPECT_EQ(runner.predict(module, loader, "all"), first_numbers(7));
      EXPECT_EQ(runner.predict(module, loader, "global_zero"), first ? first_numbers(7) : nothing);
      EXPECT_EQ(runner.predict(module, loader, "none"), nothing);
      std::vector<int64_t> each;
      runner.predict_each(module, loader, [&](const PredictionKey& key, int64_t number) {
        EXPECT_EQ(key.index, number);
        each.push_back(number);
      });
      EXPECT_EQ(each, first ? first_numbers(7) : nothing);
      const auto written = runner.predict_to_shards(module, loader);
      EXPECT_EQ(written.size(), static_cast<size_t>(ranks));
      if (first) files = written;
    });
    std::vector<int64_t> merged;
    merge_shards(files,
                 [&](const PredictionKey& key, std::string_view) { merged.push_back(key.index); });
    EXPECT_EQ(merged, first_numbers(7));
  }
}

class Backwards : public BatchSampler {
 public:
  [[nodiscard]] int64_t size() const override { return 3; }
  [[nodiscard]] std::vector<std::vector<int64_t>> batches(uint64_t, int64_t) const override {
    return {{6}, {5, 4, 0}, {2, 1, 3}};
  }
};

TEST_F(Complaints, I36IndicesTravelWithTheirSamplesWhateverTheSampler) {
  const auto data = make_dataset(7, [](int64_t index, Rng&) { return Number{.number = index}; });
  const std::vector<Loader<Number>> loaders{
      Loader<Number>{data, {.batch_size = 3, .shuffle = true}},
      Loader<Number>{data, std::make_shared<Backwards>()}};
  for (const auto& loader : loaders) {
    everywhere([&](Runner& runner) {
      Doing module;
      module.in_batch = [](const Batch& batch, Step& step) {
        for (const auto& [index, sample] : batch.indexed()) {
          EXPECT_EQ(index, sample.number);
          step.save_prediction(index, "n", at::full({2, 2}, 0.1 * static_cast<double>(index)));
        }
      };
      runner.predict_each(module, loader, [](const PredictionKey& key, int64_t number) {
        EXPECT_EQ(key.index, number);
      });
      EXPECT_EQ(runner.predict(module, loader), first_numbers(7));
    });
  }
}

TEST_F(Complaints, I37ImagesOfEveryRankAreInTheRunOnceEachBySample) {
  everywhere([](Runner& runner) {
    Doing module;
    std::vector<int64_t> mine;
    module.in_batch = [&](const Batch& batch, Step& step) {
      for (const auto& [index, sample] : batch.indexed()) {
        mine.push_back(index);
        step.log_image("in_batch", {at::full({3, 4 + index}, 0.1 * static_cast<double>(index))},
                       {.captions = {"sample " + std::to_string(index)}});
      }
    };
    module.at_end = [&](Step& step) {
      for (const int64_t index : mine) {
        step.log_image("at_end", {at::full({3, 2}, 0.1 * static_cast<double>(index))},
                       {.index = index});
      }
    };
    runner.predict(module, numbers(5, {.batch_size = 2}));
  });
  const std::string json = read_file(folder("W4") / "results.json");
  size_t at = 0;
  for (int i = 0; i < 5; ++i) {
    at = json.find("\"sample " + std::to_string(i) + "\"", at);
    ASSERT_NE(at, std::string::npos) << json;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator{folder("W4") / "media"}, {}), 10);
}

std::vector<fs::path> files_that_end(const fs::path& folder, const std::string& part) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (entry.path().filename().string().find(part) != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  return found;
}

TEST_F(Complaints, I38ManyRanksMakeOneRunOfEachLogger) {
  TrainerOptions logging = training("run");
  logging.logger = true;
  on_ranks(4, logging, [](Runner& runner) {
    Doing module;
    module.in_batch = log_mean;
    const auto val = numbers(5);
    runner.fit(module, numbers(5), &val);
  });
  EXPECT_EQ(files_that_end(folder("run"), "offline-run-").size(), 1U);
  EXPECT_EQ(files_that_end(folder("run"), "tfevents").size(), 1U);
  EXPECT_EQ(files_that_end(folder("run"), "metrics.csv").size(), 1U);
}

TEST_F(Complaints, I39StepsOfRowsNeverFallAndNoRowIsWrittenTwice) {
  TrainerOptions logging = training("run", 2);
  logging.logger = true;
  logging.log_every_n_steps = 1;
  on_ranks(3, logging, [](Runner& runner) {
    Doing module;
    module.in_batch = log_mean;
    module.in_training = [](const Batch&, Step& step) { step.log("loss", 1.0); };
    const auto val = numbers(5);
    runner.fit(module, numbers(7), &val);
  });
  std::istringstream rows{read_file(folder("run") / "metrics.csv")};
  std::string row;
  std::getline(rows, row);
  EXPECT_TRUE(has(row, "step,epoch"));
  std::vector<int64_t> steps;
  std::set<std::string> unique;
  while (std::getline(rows, row)) {
    EXPECT_TRUE(unique.insert(row).second) << row;
    steps.push_back(std::stoll(row));
  }
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.front(), 1);
  EXPECT_EQ(steps.back(), 6);
  EXPECT_EQ(steps.size(), 6U + 2U);
}

// Checkpoints and files

TEST_F(Complaints, I40AMetricInAFileNameIsTheAgreedOneAndTheFileIsThere) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const Ending end = ending(ranks, "{epoch}-{score:.2f}", [](const Step& step) {
      return std::optional{static_cast<double>(step.rank() + step.epoch())};
    });
    const std::string mean = ranks % 2 == 1 ? std::to_string((ranks - 1) / 2) + ".00"
                                            : std::to_string((ranks - 1) / 2) + ".50";
    EXPECT_TRUE(has(end.best, "epoch=0-score=" + mean + ".ckpt"));
  }
}

TEST_F(Complaints, I41AllRanksWriteIntoOneFolderThatHasNoVersions) {
  TrainerOptions logging = options("run");
  logging.logger = true;
  on_ranks(3, logging, [](Runner& runner) {
    Doing module;
    module.in_batch = log_mean;
    module.at_end = [](Step& step) {
      const auto folders = step.all_gather(step.run_dir());
      EXPECT_EQ(std::set<std::string>(folders.begin(), folders.end()).size(), 1U);
    };
    runner.validate(module, numbers(5));
  });
  EXPECT_TRUE(files_that_end(folder("run").parent_path(), "version").empty());
  EXPECT_EQ(files_that_end(folder("run").parent_path(), "tfevents").size(), 1U);
  EXPECT_EQ(files_that_end(folder("run").parent_path(), "results.json").size(), 1U);
}

TEST_F(Complaints, I42ATrainingResumedInsideAnEpochSeesTheDataAndTheChanceOfAnUninterruptedOne) {
  // By rank, the samples of each batch and a random number.
  using Seen = std::map<int, std::vector<std::string>>;
  const auto train = [&](int ranks, const TrainerOptions& options, const std::string& from,
                         Seen& seen) {
    std::mutex mutex;
    double weight = 0;
    on_ranks(ranks, options, [&](Runner& runner) {
      Doing module;
      std::vector<std::string> mine;
      module.in_training = [&](const Batch& batch, Step& step) {
        std::string text = std::to_string(step.epoch()) + ":";
        for (const int64_t index : batch.indices()) text += " " + std::to_string(index);
        // Ranks that are threads share torch's generator; tests/dist has dropout on processes.
        if (ranks == 1) text += " " + std::to_string(at::rand({1}).item<double>());
        mine.push_back(text);
      };
      runner.fit(module, numbers(13, {.batch_size = 2, .shuffle = true}), nullptr, from);
      const std::lock_guard lock{mutex};
      auto& all = seen[runner.group().rank()];
      all.insert(all.end(), mine.begin(), mine.end());
      weight = module.weight;
    });
    return weight;
  };
  for (const int ranks : {1, 2, 3}) {
    TrainerOptions whole = training("whole" + name_of(ranks), 3);
    Seen uninterrupted;
    const double expected = train(ranks, whole, "", uninterrupted);
    TrainerOptions parts = training("parts" + name_of(ranks), 3);
    parts.enable_checkpointing = true;
    parts.max_steps = (7 + ranks - 1) / ranks + 1;  // one step into the second epoch
    Seen resumed;
    EXPECT_NE(train(ranks, parts, "", resumed), expected);
    parts.max_steps = -1;
    EXPECT_EQ(train(ranks, parts, "last", resumed), expected);
    EXPECT_EQ(resumed, uninterrupted) << ranks << " ranks";
  }
}

TEST_F(Complaints, I43NeitherTheSanityCheckNorTrainingLeaksIntoAValidation) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    TrainerOptions mixed = training("mixed", 2);
    mixed.num_sanity_val_steps = -1;
    mixed.val_check_interval = 0.5;
    on_ranks(ranks, mixed, [&](Runner& runner) {
      Doing module;
      Sum sum;
      module.metrics = {{"sum", &sum}};
      module.in_batch = [&](const Batch& batch, Step& step) {
        sum.update(static_cast<double>(batch.size()) * 100);
        step.log("val", static_cast<double>(batch.size()), {.reduce_fx = ReduceFx::sum});
      };
      module.in_training = [&](const Batch& batch, Step&) {
        sum.update(static_cast<double>(batch.size()));
      };
      struct Reports : Callback {
        std::vector<std::pair<Stage, std::optional<double>>> sums{};
        void on_epoch_end(const Progress& progress, const Report& report) override {
          sums.emplace_back(progress.stage, report.get("sum"));
        }
      };
      const auto reports = std::make_shared<Reports>();
      runner.add_callback(reports);
      const auto val = numbers(5, {.batch_size = 2});
      EXPECT_EQ(runner.fit(module, numbers(12), &val).get("val"), 5.0);
      using Sums = decltype(Reports::sums);
      const Sums of_epoch{{Stage::validate, 500.0}, {Stage::validate, 500.0}, {Stage::fit, 12.0}};
      Sums expected = of_epoch;
      expected.insert(expected.end(), of_epoch.begin(), of_epoch.end());
      EXPECT_EQ(reports->sums, expected);
    });
  }
}

}  // namespace
}  // namespace muster::test
