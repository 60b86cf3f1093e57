// Training on real processes: what one process would give, and what happens when a rank fails.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/io/safetensors.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

using Arguments = std::vector<std::string>;

/// The command lines of the processes that are there and name `text`.
std::vector<std::string> processes_that_name(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator{"/proc"}) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto line = read_file_if_there(entry.path() / "cmdline");
    if (line && line->find(text) != std::string::npos) found.push_back(pid + ": " + *line);
  }
  return found;
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

class FitOnProcesses : public ::testing::Test {
 protected:
  /// Runs the program's fit in the folder `run`; ranks write what they end with there.
  [[nodiscard]] Outcome fit(const std::string& run, int ranks, const Arguments& more) const {
    Arguments arguments = arguments_of(run, more);
    arguments.insert(arguments.end(), {"--devices", std::to_string(ranks)});
    return run_program(program(), arguments);
  }
  [[nodiscard]] Arguments arguments_of(const std::string& run, const Arguments& more) const {
    Arguments all{"fit", "--run_dir", (folder_ / run).string(), "--model.out",
                  (folder_ / run / "ends").string()};
    for (const auto* option :
         {"logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"}) {
      all.insert(all.end(), {std::string{"--trainer."} + option, "false"});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] static fs::path program() { return bin_dir() / "test_dist_fit_program"; }
  [[nodiscard]] fs::path folder(const std::string& run) const { return folder_ / run; }

  [[nodiscard]] std::string end_file(const std::string& run, int rank) const {
    return read_file(folder_ / run / "ends" / ("rank-" + std::to_string(rank) + ".safetensors"));
  }
  /// What all ranks ended with, which must be the same bytes: parameters and steps.
  [[nodiscard]] SafeTensors end_of(const std::string& run, int ranks) const {
    const std::string first = end_file(run, 0);
    for (int rank = 1; rank < ranks; ++rank) {
      EXPECT_TRUE(end_file(run, rank) == first) << "rank " << rank << " differs from rank 0";
    }
    return parse_safetensors(first, run);
  }
  [[nodiscard]] SafeTensors end_of_fit(const std::string& run, int ranks,
                                       const Arguments& more) const {
    const Outcome outcome = fit(run, ranks, more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return end_of(run, ranks);
  }
  /// On `ranks` and on one process with as many more batches accumulated.
  [[nodiscard]] std::pair<SafeTensors, SafeTensors> ends(int ranks, int accumulate,
                                                         const Arguments& more) const {
    const auto with = [&](int batches) {
      Arguments all{"--trainer.accumulate_grad_batches", std::to_string(batches)};
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    return {end_of_fit("one", 1, with(ranks * accumulate)),
            end_of_fit("several", ranks, with(accumulate))};
  }
  /// Error files of all ranks.
  [[nodiscard]] std::vector<std::string> error_files(const std::string& run, int ranks) const {
    std::vector<std::string> texts;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto path = folder_ / run / "errors" / ("rank-" + std::to_string(rank) + ".json");
      texts.push_back(read_file_if_there(path).value_or(""));
    }
    return texts;
  }
  /// A job that has ended for one reason, which is told once, and soon; nothing of it is left.
  void expect_failure(const Outcome& outcome, int code, const std::string& reason) const {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_EQ(count(outcome.err, reason), 1) << outcome.err;
    EXPECT_LT(outcome.seconds, patience());
    EXPECT_EQ(processes_that_name(folder_.path().string()), std::vector<std::string>{});
  }

 private:
  /// Seconds that a job may take which fails: far below what a rank waits for another.
  [[nodiscard]] double patience() const {
    const Outcome calm = fit("calm", 2, {"--trainer.max_steps", "1"});
    EXPECT_EQ(calm.exit_code, 0) << calm.err;
    return 10 + 10 * calm.seconds;  // the machine may be busy
  }

  TempFolder folder_;
};

at::Tensor flat(const SafeTensors& file) {
  std::vector<at::Tensor> parts;
  for (const auto& [name, tensor] : file.tensors) parts.push_back(tensor.flatten().to(at::kDouble));
  return at::cat(parts);
}

double difference(const SafeTensors& left, const SafeTensors& right) {
  return (flat(left) - flat(right)).abs().max().item<double>();
}

std::string note(const SafeTensors& file, const std::string& name) {
  for (const auto& [key, text] : file.metadata) {
    if (key == name) return text;
  }
  return "none";
}

const Arguments float64{"--trainer.precision", "64-true"};
const Arguments twenty_steps{"--trainer.max_steps", "20"};

Arguments joined(const Arguments& left, const Arguments& right) {
  Arguments all = left;
  all.insert(all.end(), right.begin(), right.end());
  return all;
}

/// Ranks, accumulated batches, whether in float64.
class FitOnRanks : public FitOnProcesses,
                   public ::testing::WithParamInterface<std::tuple<int, int, bool>> {};

// 11 batches of 2, the last one of 1: an epoch's last step is uneven. Dropout is on.
TEST_P(FitOnRanks, EndsAsOneProcessDoesWithAccumulatedBatches) {
  const auto [ranks, accumulate, in_float64] = GetParam();
  const auto [one, several] =
      ends(ranks, accumulate, joined(twenty_steps, in_float64 ? float64 : Arguments{}));
  EXPECT_EQ(note(one, "steps"), note(several, "steps"));
  const at::Tensor scale = flat(one).abs().clamp_min(0.01);
  const double found = in_float64
                           ? difference(one, several)
                           : ((flat(one) - flat(several)).abs() / scale).max().item<double>();
  RecordProperty("difference", std::to_string(found * 1e12) + "e-12");
  EXPECT_LT(found, in_float64 ? 1e-12 : 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Ranks, FitOnRanks,
                         ::testing::Combine(::testing::Values(2, 3), ::testing::Values(1, 2),
                                            ::testing::Bool()));

TEST_F(FitOnProcesses, DropoutAndEachStepChangeWhatATrainingEndsWith) {
  const auto with = end_of_fit("with", 1, twenty_steps);
  EXPECT_GT(
      difference(with, end_of_fit("without", 1, joined(twenty_steps, {"--model.dropout", "0"}))),
      0.01);
  EXPECT_GT(difference(with, end_of_fit("shorter", 1, {"--trainer.max_steps", "19"})), 1e-3);
}

TEST_F(FitOnProcesses, AnEpochMayHaveFewerBatchesThanThereAreRanks) {
  const auto [one, several] =
      ends(3, 1, joined(joined(twenty_steps, float64), {"--data.samples", "3"}));
  EXPECT_LT(difference(one, several), 1e-12);
}

TEST_F(FitOnProcesses, ALauncherOfTheUsersGivesTheSameBytes) {
  ASSERT_EQ(fit("own", 3, twenty_steps).exit_code, 0);
  const Outcome outcome = run_program(
      bin_dir() / "muster",
      joined({"launch", "-n", "3", program().string()}, arguments_of("launched", twenty_steps)));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(end_file("launched", 2), end_file("own", 0));
}

TEST_F(FitOnProcesses, ALossThatIsNotFiniteOnOneRankStopsAllAtTheSameStep) {
  for (const int ranks : {1, 2, 3}) {
    const std::string run = std::to_string(ranks);
    const Outcome outcome = fit(run, ranks, {"--model.trouble", "not_finite"});
    expect_failure(outcome, 1, "is not finite");
    const int step = (11 + ranks - 1) / ranks + 7 / ranks;
    EXPECT_TRUE(has(outcome.err, "the loss of step " + std::to_string(step) + " (epoch 1)"));
    EXPECT_TRUE(
        has(outcome.err, "nan on rank " + std::to_string(7 % ranks) + " (batch 7, samples "));
  }
}

TEST_F(FitOnProcesses, ALossThatIsNotFiniteAmongAccumulatedBatchesStopsAllToo) {
  const Outcome outcome = fit("run", 3,
                              {"--model.trouble", "not_finite", "--model.at", "6",
                               "--trainer.accumulate_grad_batches", "2"});
  expect_failure(outcome, 1, "is not finite");
  EXPECT_TRUE(has(outcome.err, "nan on rank 0 (batch 6, samples "));
}

TEST_F(FitOnProcesses, AnomalyDetectionNamesTheOperationWhoseBackwardGaveNaN) {
  for (const int ranks : {1, 2}) {
    const Outcome outcome = fit(std::to_string(ranks), ranks,
                                {"--model.trouble", "not_finite", "--model.at", "1",
                                 "--data.samples", "3", "--trainer.detect_anomaly", "true"});
    expect_failure(outcome, 1, "returned nan values in its 0th output");
    EXPECT_TRUE(has(outcome.err, "Function 'MulBackward"));
    EXPECT_TRUE(has(outcome.err, "during fit, epoch 1, step " + std::to_string(3 / ranks)));
  }
}

TEST_F(FitOnProcesses, SkippedStepsAreThoseOfOneProcess) {
  for (const int ranks : {2, 3}) {
    const auto [one, several] =
        ends(ranks, 1,
             joined(joined(twenty_steps, float64),
                    {"--model.trouble", "not_finite", "--trainer.non_finite_loss", "skip"}));
    EXPECT_EQ(note(one, "steps"), note(several, "steps"));
    const std::string skipped = std::to_string((11 + ranks - 1) / ranks + 7 / ranks);
    EXPECT_EQ(count(" " + note(several, "steps"), " " + skipped + " "), 0);
    EXPECT_EQ(count(note(several, "steps"), " "), 19);
    EXPECT_TRUE(flat(several).isfinite().all().item<bool>());
    EXPECT_LT(difference(one, several), 1e-12);
  }
}

TEST_F(FitOnProcesses, AStoppedAndResumedTrainingEndsWithTheSameBytes) {
  const Arguments options{"--trainer.enable_checkpointing",
                          "true",
                          "--trainer.max_epochs",
                          "4",
                          "--model.adam",
                          "true",
                          "--model.batch_norm",
                          "true"};
  const auto model_of = [&](const std::string& run) {
    return read_file(folder(run) / "checkpoints/last.ckpt/model.safetensors");
  };
  ASSERT_EQ(fit("whole", 2, options).exit_code, 0);
  const std::string whole = model_of("whole");
  // 6 steps an epoch: at an epoch's end, in the middle of one, before its last and uneven step.
  for (const auto* stop_after : {"12", "9", "5"}) {
    const std::string run = std::string{"parts-"} + stop_after;
    ASSERT_EQ(fit(run, 2, joined(options, {"--trainer.max_steps", stop_after})).exit_code, 0);
    EXPECT_FALSE(model_of(run) == whole);
    const Outcome rest = fit(run, 2, joined(options, {"--ckpt_path", "last"}));
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_TRUE(model_of(run) == whole) << "stopped after " << stop_after;
  }
}

TEST_F(FitOnProcesses, ARankThatThrowsEndsTheJobWithItsMessage) {
  // Batch 10 is alone in its round of 2, and one of two in its round of 3.
  for (const auto& [ranks, batch] : {std::pair{2, 7}, {2, 10}, {3, 10}}) {
    const std::string run = std::to_string(ranks) + "-" + std::to_string(batch);
    const Outcome outcome =
        fit(run, ranks, {"--model.trouble", "exception", "--model.at", std::to_string(batch)});
    expect_failure(outcome, 1, "the model does not like this batch");
    EXPECT_TRUE(has(outcome.err, "rank " + std::to_string(batch % ranks) + " (pid"));
    EXPECT_TRUE(has(outcome.err, "batch " + std::to_string(batch)));
  }
}

TEST_F(FitOnProcesses, ParametersMayBeLeftOutOfALossWhereTheStrategySaysSo) {
  for (const int ranks : {2, 3}) {
    const auto [one, several] = ends(
        ranks, 1,
        joined(joined(twenty_steps, float64), {"--model.trouble", "unused", "--trainer.strategy",
                                               "ddp_find_unused_parameters_true"}));
    EXPECT_LT(difference(one, several), 1e-12);
  }
}

TEST_F(FitOnProcesses, EveryRankNamesTheParameterThatALossLeavesOut) {
  const Outcome outcome = fit("run", 2, {"--model.trouble", "unused"});
  expect_failure(outcome, 1, "does not depend on these parameters: on rank 1 'rare_weight'");
  EXPECT_TRUE(has(outcome.err, "--trainer.strategy ddp_find_unused_parameters_true"));
  for (const auto& text : error_files("run", 2)) EXPECT_TRUE(has(text, "on rank 1 'rare_weight'"));
}

// The last round has a batch less than there are ranks; its running averages count too.
TEST_F(FitOnProcesses, SyncBatchNormTrainsAsOneProcessDoesWithTheBatchesOfARoundInOne) {
  const Arguments options = joined(float64, {"--model.sync_batch_norm", "true", "--model.dropout",
                                             "0", "--trainer.max_epochs", "2"});
  for (const auto& [ranks, samples] : {std::pair{2, 22}, {3, 21}}) {
    for (const auto* accumulate : {"1", "2"}) {
      const auto end = [&, samples = samples](const std::string& run, int processes, int batch) {
        return end_of_fit(run + std::to_string(ranks) + accumulate, processes,
                          joined(options, {"--data.samples", std::to_string(samples),
                                           "--data.batch_size", std::to_string(batch),
                                           "--trainer.accumulate_grad_batches", accumulate}));
      };
      const auto one = end("one", 1, 2 * ranks);
      EXPECT_LT(difference(one, end("several", ranks, 2)), 1e-12);
      EXPECT_EQ(one.tensors.size(), 11U);
    }
  }
}

TEST_F(FitOnProcesses, ARankThatLeavesOutASyncBatchNormIsAMismatchAndNoHang) {
  // Batch 7 is in an even round, batch 10 is one of two in the last round of 3.
  for (const auto& [ranks, batch] : {std::pair{2, 7}, {3, 10}}) {
    const Outcome outcome =
        fit(std::to_string(ranks), ranks,
            {"--model.sync_batch_norm", "true", "--model.trouble", "other_layers", "--model.at",
             std::to_string(batch), "--data.samples", "22"});
    expect_failure(outcome, 70, "the ranks disagree on the next collective");
    EXPECT_TRUE(has(outcome.err, "src/train/sync_batch_norm"));
  }
}

TEST_F(FitOnProcesses, HooksMayGatherInEveryRound) {
  for (const int ranks : {2, 3}) {
    for (const auto* accumulate : {"1", "2"}) {
      const auto end = end_of_fit(std::to_string(ranks) + "-" + accumulate, ranks,
                                  {"--model.trouble", "gather", "--trainer.max_epochs", "2",
                                   "--trainer.accumulate_grad_batches", accumulate});
      EXPECT_EQ(note(end, "gathers"), "1");
    }
  }
}

}  // namespace
}  // namespace muster::test
