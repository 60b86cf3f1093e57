// Rows C of docs/faults.md: ranks that disagree, and numbers that are none.

#include "faults/job.h"

#include "support/texts.h"

#include <muster/base/format.h>
#include <muster/io/checkpoint_folder.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>

namespace muster::test {
namespace {

int64_t count(const std::vector<std::string>& lines, const std::string& start) {
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(start); });
}

/// A collective that the last rank calls differently, at the start and after a validation.
class Misused {
 public:
  static constexpr const char* points[] = {"start", "val_end"};
};

TEST_F(Faults, C24_AnotherNumberOfElementsIsAMismatchThatNamesBoth) {
  for (const auto* point : Misused::points) {
    expect({.fault = format("{}:*:0:count", point), .run = point},
           {.exit_code = 70, .says = "the ranks disagree(.|\n)*1000(.|\n)*500"});
  }
}

TEST_F(Faults, C25_AnotherTypeIsAMismatchThatNamesBoth) {
  expect({.fault = "start:*:0:dtype"},
         {.exit_code = 70, .says = "the ranks disagree(.|\n)*4 double(.|\n)*4 int64"});
}

TEST_F(Faults, C26_AnotherOperationIsAMismatchAtOnce) {
  expect({.fault = "val_end:*:0:operation"},
         {.exit_code = 70, .says = "the ranks disagree(.|\n)*all_reduce(.|\n)*broadcast"});
}

TEST_F(Faults, C27_AnotherReductionOrRootIsAMismatch) {
  expect({.fault = "start:*:0:reduction", .run = "reduction"},
         {.exit_code = 70, .says = "the ranks disagree(.|\n)*sum(.|\n)*max"});
  expect({.fault = "start:*:0:root", .run = "root"},
         {.exit_code = 70, .says = "the ranks disagree(.|\n)*from rank 0(.|\n)*from rank 1"});
}

TEST_F(Faults, C28_ARankThatCallsOneCollectiveFewerGivesNoNumber) {
  const Ended ended =
      expect({.fault = "val_end:*:0:fewer"}, {.exit_code = 70, .says = "the ranks disagree"});
  EXPECT_EQ(ended.out, "");
}

TEST_F(Faults, C29_ParametersThatDifferAreNamedBeforeTheFirstStep) {
  Job job = start({.options = {"--model.other_shape", "true"}});
  expect(job, {.exit_code = 2, .within_s = 20, .says = "'bias'(.|\n)*\\[1\\](.|\n)*\\[3\\]"});
  EXPECT_EQ(job.lines(0).size(), 0U);
}

TEST_F(Faults, C30_ARankWithOtherWeightsStartsFromThoseOfRankZero) {
  const Scenario scenario{.options = {"--model.other_init", "true", "--trainer.max_epochs", "1"}};
  expect(scenario, {.exit_code = 0, .within_s = 30});
  EXPECT_TRUE(last_model() == whole_model({.options = {"--trainer.max_epochs", "1"}}));
}

TEST_F(Faults, C30_ParametersThatComeApartLaterAreNamedWhenTheyAreCompared) {
  const Arguments compared{"--trainer.check_weights_every_n_steps", "2", "--trainer.max_epochs",
                           "3"};
  expect({.ranks = 3, .fault = "batch_end:1:5:drift", .options = compared},
         {.exit_code = 70,
          .says = "the ranks have come apart by step 6: rank 1 has other values of 'b' "
                  "\\(float32\\[1, 16\\]\\) than rank 0"});
  expect({.ranks = 3, .options = compared, .run = "calm"}, {.exit_code = 0, .within_s = 30});
}

TEST_F(Faults, C30_AnotherCheckpointOnOneRankIsNamed) {
  const Arguments one_epoch{"--trainer.max_epochs", "1"};
  expect({.options = one_epoch}, {.exit_code = 0, .within_s = 30});
  expect({.options = {"--trainer.max_epochs", "1", "--trainer.seed", "7"}, .run = "other"},
         {.exit_code = 0, .within_s = 30});
  expect({.fault = "main:1:*:elsewhere",
          .options = {"--trainer.max_epochs", "2", "--ckpt_path", "./last.ckpt"},
          .script = format("cd {}; exec \"$@\"", (run_dir() / "checkpoints").native())},
         {.exit_code = 70,
          .within_s = 20,
          .says = "rank 1 has read another checkpoint ./last.ckpt than rank 0"});
}

TEST_F(Faults, C31_AParameterThatOneRankLeavesOutIsNamed) {
  expect({.fault = "step:1:*:unused", .options = {"--trainer.max_epochs", "1"}},
         {.exit_code = 1,
          .within_s = 20,
          .says = "does not depend on these parameters: on rank 1 'bias'"});
}

TEST_F(Faults, C32_RanksWithABatchFewerStopTogether) {
  Job job = start({.ranks = 3, .options = {"--data.samples", "22", "--trainer.max_epochs", "1"}});
  expect(job, {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(checkpoints(), std::vector<std::string>{"epoch=0-step=4.ckpt"});
  EXPECT_EQ(count(job.lines(0), "step"), 4);
  EXPECT_EQ(count(job.lines(2), "step"), 3);
}

TEST_F(Faults, C33_EvaluationSeesEachSampleOnceAtAnyNumberOfRanks) {
  for (const auto* samples : {"7", "1"}) {
    std::vector<std::string> metrics;
    for (const int ranks : {1, 3}) {
      Job job = start({.ranks = ranks,
                       .options = {"--data.val_samples", samples},
                       .command = "validate",
                       .run = format("{}-{}", samples, ranks)});
      const Ended ended = job.finish();
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
      metrics.push_back(ended.out);
      int64_t seen = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const auto& line : job.lines(rank)) {
          if (line.starts_with("val ")) seen += std::stoll(line.substr(line.rfind(' ')));
        }
      }
      EXPECT_EQ(seen, std::stoll(samples));
    }
    EXPECT_TRUE(has(metrics[0], "val/loss"));
    EXPECT_EQ(metrics[0], metrics[1]);
  }
}

TEST_F(Faults, C34_ALossThatIsNaNOnOneRankStopsAllWithItsName) {
  expect({.ranks = 3, .fault = "step:1:5:nan"},
         {.exit_code = 1,
          .says = "the loss of step 5 \\(epoch 1\\) is not finite: nan on rank 1 \\(batch 4, "
                  "samples [0-9]+, [0-9]+\\)"});
}

TEST_F(Faults, C34_OrIsSkippedByAllAtTheSameStep) {
  // A rank that did not skip would have parameters that are NaN, and other ones than the others.
  Job job = start({.ranks = 3,
                   .fault = "step:1:5:nan",
                   .options = {"--trainer.non_finite_loss", "skip", "--trainer.max_epochs", "2",
                               "--trainer.check_weights_every_n_steps", "1"}});
  expect(job, {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(count(job.lines(0), "step"), 8);
  EXPECT_EQ(count(job.lines(1), "step"), 8);
  const NamedTensors model = read_checkpoint(run_dir() / "checkpoints/last.ckpt").model;
  for (const auto& [name, tensor] : model) {
    EXPECT_TRUE(at::isfinite(tensor).all().item<bool>()) << name;
  }
}

TEST_F(Faults, C35_AStopByAValueThatDiffersFromRankToRankIsTakenByAll) {
  Job job = start({.options = {"--model.early_stop", "true", "--trainer.max_epochs", "20",
                               "--data.samples", "8"}});
  // The mean over the samples of both ranks, (2 * -2 + 1 * -3 + 2 * 20) / 5 at first.
  expect(job, {.exit_code = 0,
               .within_s = 30,
               .says = "training stopped after [0-9]+ steps: val/of_rank did not get better in 2 "
                       "checks \\(the best was 6\\.6\\)"});
  EXPECT_EQ(count(job.lines(0), "step"), count(job.lines(1), "step"));
  EXPECT_LT(count(job.lines(0), "step"), 20);
}

TEST_F(Faults, C35_AWishToStopThatOneRankHasIsTakenByAll) {
  Job job = start({.fault = "epoch_end:1:2:enough",
                   .options = {"--trainer.max_epochs", "20", "--data.samples", "8"}});
  expect(job, {.exit_code = 0,
               .within_s = 30,
               .says = "training stopped after 6 steps: another rank was told to"});
  for (const int rank : {0, 1}) {
    EXPECT_EQ(count(job.lines(rank), "step"), 6);
  }
}

}  // namespace
}  // namespace muster::test
