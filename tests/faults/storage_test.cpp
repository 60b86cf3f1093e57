// Rows E of docs/faults.md: disks and files.

#include "faults/job.h"

#include "support/paths.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/io/checkpoint_folder.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

const Arguments three_epochs{"--trainer.max_epochs", "3"};

Arguments joined(Arguments one, const Arguments& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

TEST_F(Faults, E46_AKillWithinASaveLeavesACheckpointThatLoads) {
  const Scenario calm{.options = three_epochs};
  const std::string whole = whole_model(calm);
  // Within the first save, the second, and the change of the links.
  for (const int nth : {5, 31, 44}) {
    Scenario scenario = calm;
    scenario.ranks = 2;
    scenario.run = format("run-{}", nth);
    scenario.shim = format("any:checkpoints:{}:kill", nth);
    Job job = start(scenario);
    const Ended ended = job.finish();
    EXPECT_EQ(ended.exit_code, 137) << ended.err;
    const bool has_one = !checkpoints(scenario.run).empty();
    const fs::path last = run_dir(scenario.run) / "checkpoints/last.ckpt";
    EXPECT_TRUE(!fs::is_symlink(last) || fs::exists(last));
    if (has_one && fs::exists(last)) {
      EXPECT_TRUE(resumed_model(scenario) == whole) << nth;
    }
  }
}

TEST_F(FaultsSlow, E46_AKillAtAnyCallWithinSavesLosesNoCheckpoint) {
  const Scenario calm{.ranks = 1, .options = three_epochs};
  const std::string whole = whole_model(calm);
  for (int nth = 1; nth < 400; ++nth) {
    Scenario scenario = calm;
    scenario.run = format("run-{}", nth);
    scenario.shim = format("any:checkpoints:{}:kill", nth);
    Job job = start(scenario);
    const Ended ended = job.finish();
    if (ended.exit_code == 0) {
      EXPECT_GT(nth, 50);
      return;
    }
    ASSERT_EQ(ended.exit_code, 137) << ended.err;
    const fs::path last = run_dir(scenario.run) / "checkpoints/last.ckpt";
    EXPECT_TRUE(!fs::is_symlink(last) || fs::exists(last));
    if (fs::exists(last)) {
      EXPECT_TRUE(resumed_model(scenario) == whole) << nth;
    }
    fs::remove_all(run_dir(scenario.run));
  }
  FAIL() << "no end of calls";
}

TEST_F(Faults, E47_AFullDiskIsNamedWithWhatIsNeededAndTheOldCheckpointStays) {
  const Scenario first{.options = {"--trainer.max_epochs", "1"}};
  expect(first, {.exit_code = 0, .within_s = 30});
  expect({.shim = "write:checkpoints:2+:ENOSPC",
          .options = joined(three_epochs, {"--ckpt_path", "last"})},
         {.exit_code = 74,
          .within_s = 30,
          .says = "cannot write [^\n]*checkpoints/[^\n]*: No space left on device[^\n]* [0-9]+ "
                  "bytes[^\n]* [0-9]+ "});
  EXPECT_EQ(checkpoints(), std::vector<std::string>{"epoch=0-step=6.ckpt"});
  for (const auto& entry : fs::directory_iterator{run_dir() / "checkpoints"}) {
    EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << entry.path();
  }
}

TEST_F(Faults, E47_AFileThatMayNotGrowIsTheSame) {
  expect({.options = joined(three_epochs, {"--model.large", "true"}),
          .script = "ulimit -f 1000; exec \"$@\""},
         {.exit_code = 74,
          .within_s = 30,
          .says = "cannot write [^\n]*checkpoints/[^\n]*: File too large"});
  EXPECT_TRUE(checkpoints().empty());
}

TEST_F(Faults, E47_OrTheTrainingGoesOnAndShowsItAtItsEndIfTheLastOneFailed) {
  const Arguments warned = joined(three_epochs, {"--trainer.checkpoint_failure", "warn"});
  for (const auto* beside : {"false", "true"}) {
    const Arguments options = joined(warned, {"--trainer.async_checkpointing", beside});
    expect({.shim = "fsync:step=12:1+:ENOSPC", .options = options, .run = beside},
           {.exit_code = 0,
            .within_s = 30,
            .says = "a checkpoint was not written, and the training goes on: cannot write "
                    "[^\n]*step=12[^\n]*: No space left on device"});
    const std::vector<std::string> others{"epoch=0-step=6.ckpt", "epoch=2-step=18.ckpt"};
    EXPECT_EQ(checkpoints(beside), others);
    expect({.shim = "fsync:step=18:1+:ENOSPC", .options = options, .run = "last"},
           {.exit_code = 74, .within_s = 30, .says = "goes on(.|\n)*cannot write [^\n]*step=18"});
    fs::remove_all(run_dir("last"));
  }
  EXPECT_TRUE(last_model("true") == whole_model({.options = three_epochs}));
}

TEST_F(Faults, E48_APlaceThatCannotBeWrittenIsToldBeforeTheFirstStep) {
  for (const auto* calls : {"any:/run", "open:/checkpoints/."}) {
    Job job = start({.shim = format("{}:1+:EROFS", calls)});
    expect(job, {.exit_code = 73, .within_s = 20, .says = "Read-only file system"});
    EXPECT_EQ(job.lines(0).size(), 0U) << calls;
  }
}

/// Damages a file of the newest checkpoint.
void flip_a_bit(const fs::path& path, uint64_t at) {
  std::string bytes = read_file(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 16);
  std::ofstream{path, std::ios::binary} << bytes;
}

TEST_F(Faults, E50_ADamagedCheckpointIsNamedAndThePreviousOneTaken) {
  const Scenario scenario{.ranks = 1, .options = three_epochs};
  const std::string whole = whole_model(scenario);
  expect({.ranks = 1, .options = {"--trainer.max_epochs", "2"}}, {.exit_code = 0, .within_s = 30});
  const fs::path newest = run_dir() / "checkpoints/epoch=1-step=24.ckpt";
  const fs::path model = newest / "model.safetensors";
  const uint64_t size = fs::file_size(model);
  for (uint64_t sixteenth = 0; sixteenth < 16; ++sixteenth) {
    fs::copy_file(model, folder_ / "model");
    fs::resize_file(model, size * sixteenth / 16);
    EXPECT_THROW(static_cast<void>(read_checkpoint(newest)), std::exception) << sixteenth;
    fs::copy_file(folder_ / "model", model, fs::copy_options::overwrite_existing);
    flip_a_bit(model, size * sixteenth / 16 + 3);
    EXPECT_THROW(static_cast<void>(read_checkpoint(newest)), std::exception) << sixteenth;
    fs::copy_file(folder_ / "model", model, fs::copy_options::overwrite_existing);
    fs::remove(folder_ / "model");
  }
  flip_a_bit(model, size - 10);
  Job named = start({.ranks = 1, .options = joined(three_epochs, {"--ckpt_path", newest})});
  const Ended ended = named.finish();
  EXPECT_EQ(ended.exit_code, 65);
  EXPECT_TRUE(says(ended.err, "model.safetensors is damaged[^\n]*tensor 'b(ias)?'"));
  Job resumed = start({.ranks = 1, .options = joined(three_epochs, {"--ckpt_path", "last"})});
  const Ended end = resumed.finish();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(says(end.err, "cannot be used[^\n]*going on from [^\n]*epoch=0-step=12.ckpt"));
  EXPECT_TRUE(last_model() == whole);
}

TEST_F(Faults, E50_OfTwoTrainingsInAFolderTheOneThatWasLastIsGoneOnWith) {
  const Arguments options = joined(three_epochs, {"--model.checkpoint_every", "5"});
  const std::string whole = whole_model({.ranks = 1, .options = options});
  expect({.ranks = 1, .options = {"--seed", "5", "--trainer.max_steps", "18"}},
         {.exit_code = 0, .within_s = 30});
  expect({.ranks = 1, .options = joined(options, {"--trainer.max_steps", "20"})},
         {.exit_code = 0, .within_s = 30});
  ASSERT_EQ(checkpoints(),
            (std::vector<std::string>{"epoch=0-step=12.ckpt", "epoch=1-step=15.ckpt",
                                      "epoch=1-step=18.ckpt", "epoch=1-step=20.ckpt"}));
  const std::string resumes = "going on from [^\n]*epoch=1-step=15.ckpt\n";
  const fs::path last = run_dir() / "checkpoints/epoch=1-step=20.ckpt";
  fs::copy(run_dir(), run_dir("no manifest"),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  flip_a_bit(last / "model.safetensors", fs::file_size(last / "model.safetensors") - 10);
  fs::resize_file(run_dir("no manifest") / "checkpoints/epoch=1-step=20.ckpt/manifest.json", 40);
  for (const auto* run : {"run", "no manifest"}) {
    Job job = start({.ranks = 1, .options = joined(options, {"--ckpt_path", "last"}), .run = run});
    const Ended end = job.finish();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_TRUE(says(end.err, "cannot be used[^\n]*" + resumes)) << end.err;
    EXPECT_TRUE(last_model(run) == whole) << run;
  }
}

TEST_F(Faults, E51_OldCheckpointsGoOnlyWhenTheNewOneIsThere) {
  const Arguments options = joined(three_epochs, {"--model.checkpoint_every", "4"});
  // Of two that are kept; the third save fails.
  expect({.ranks = 1, .shim = "fsync:step=12:1+:EIO", .options = options},
         {.exit_code = 74, .within_s = 30, .says = "step=12"});
  EXPECT_EQ(checkpoints().size(), 2U);
  // Into another folder: those of the first stay.
  expect({.ranks = 1,
          .options = joined(options, {"--ckpt_path", run_dir() / "checkpoints/last.ckpt"}),
          .run = "other"},
         {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(checkpoints().size(), 2U);
  EXPECT_EQ(checkpoints("other").size(), 2U);
}

TEST_F(Faults, E51_InAFolderThatWasMovedOldCheckpointsGoAndThoseOfAnotherTrainingStay) {
  const Arguments options = joined(three_epochs, {"--model.checkpoint_every", "4"});
  const auto stops = joined(options, {"--trainer.max_steps", "8"});
  expect({.options = stops}, {.exit_code = 0, .within_s = 30});
  expect({.options = stops, .run = "other"}, {.exit_code = 0, .within_s = 30});
  ASSERT_EQ(checkpoints(), checkpoints("other"));
  // The names of the list are there, and another training's.
  expect({.options = joined(options, {"--ckpt_path", run_dir() / "checkpoints/last.ckpt"}),
          .run = "other"},
         {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(checkpoints().size(), 2U);
  EXPECT_EQ(checkpoints("other").size(), 4U);
  fs::rename(run_dir(), run_dir("moved"));
  expect({.options = joined(options, {"--ckpt_path", "last"}), .run = "moved"},
         {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(checkpoints("moved").size(), 2U);
}

TEST_F(Faults, E52_AnAsynchronousSaveHoldsTheValuesOfItsCallThoughTheTrainingGoesOn) {
  const Arguments options = joined(three_epochs, {"--model.checkpoint_every", "4"});
  expect({.options = options, .run = "sync"}, {.exit_code = 0, .within_s = 30});
  // Each save waits before it looks at a value, and the steps between them take next to no time.
  expect({.shim = "mkdir:checkpoints:1+:slow",
          .options = joined(options, {"--trainer.async_checkpointing", "true"}),
          .run = "async"},
         {.exit_code = 0, .within_s = 60});
  const auto names = checkpoints("sync");
  EXPECT_EQ(names.size(), 2U);
  EXPECT_EQ(checkpoints("async"), names);
  for (const auto& name : names) {
    const auto path = fs::path{"checkpoints"} / name / "tensors.sha256";
    EXPECT_EQ(read_file(run_dir("async") / path), read_file(run_dir("sync") / path));
  }
}

TEST_F(Faults, E52_AnAsynchronousSaveThatFailsShowsAtTheNextStepAndAtTheEnd) {
  const Arguments options = joined(three_epochs, {"--trainer.async_checkpointing", "true"});
  Job job = start(
      {.shim = "fsync:step=6:1+:EIO", .options = joined(options, {"--model.step_ms", "200"})});
  expect(job, {.exit_code = 74, .within_s = 30, .says = "step=6[^\n]*: Input/output error"});
  for (const auto& line : job.lines(0)) {
    EXPECT_NE(line, "step 8");  // step 7 at most follows
  }
  EXPECT_TRUE(checkpoints().empty());
  expect({.shim = "fsync:step=18:1+:EIO", .options = options, .run = "end"},
         {.exit_code = 74, .within_s = 30, .says = "step=18[^\n]*: Input/output error"});
  EXPECT_EQ(checkpoints("end").size(), 2U);
}

/// The values of the first column, which must be whole lines of as many cells as the header has.
std::vector<int64_t> steps_of(const fs::path& csv) {
  std::ifstream file{csv};
  std::string header;
  std::getline(file, header);
  std::vector<int64_t> steps;
  for (std::string line; std::getline(file, line);) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(header.begin(), header.end(), ','))
        << line;
    steps.push_back(std::stoll(line));
  }
  return steps;
}

Arguments logged(const Arguments& options) {
  return joined(options, {"--trainer.logger", "true", "--trainer.log_every_n_steps", "1"});
}

TEST_F(Faults, E53_LogsOfAKilledTrainingAreReadToTheLastRow) {
  expect({.fault = "step:0:9:kill", .options = logged(three_epochs)},
         {.exit_code = 137, .says = "killed by SIGKILL"});
  const auto steps = steps_of(run_dir() / "metrics.csv");
  ASSERT_FALSE(steps.empty());
  EXPECT_EQ(steps.back(), 9);
}

TEST_F(Faults, E54_AResumedTrainingHasEachStepOnceThoughALineWasTorn) {
  const Scenario scenario{.options = logged(three_epochs)};
  const std::string whole = whole_model(scenario);
  const auto expected = read_file(run_dir("whole") / "metrics.csv");
  Scenario killed = scenario;
  killed.fault = "step:0:9:kill";
  expect(killed, {.exit_code = 137, .says = "killed by SIGKILL"});
  std::ofstream{run_dir() / "metrics.csv", std::ios::app} << "10,1,0.";
  // What else goes on with the file comes after its last whole line.
  Scenario validated = scenario;
  validated.command = "validate";
  expect(validated, {.exit_code = 0, .within_s = 30});
  EXPECT_EQ(steps_of(run_dir() / "metrics.csv").back(), 0);
  EXPECT_TRUE(resumed_model(scenario) == whole);
  EXPECT_EQ(read_file(run_dir() / "metrics.csv"), expected);
}

}  // namespace
}  // namespace muster::test
