// The built examples as a user runs them: real processes, whole run folders.

#include "support/paths.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>

#include <gtest/gtest.h>

namespace muster::test {
namespace {

const std::vector<std::string> compared{"results.json", "tables", "predictions"};

Outcome run_in(const std::filesystem::path& run_dir, const std::string& program,
               std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--run_dir", run_dir.string()});
  return run_program(bin_dir() / program, arguments);
}

/// Runs at each world size and expects the same bytes.
void expect_same_bytes(const std::string& program, const std::vector<std::string>& arguments,
                       const std::vector<std::string>& worlds) {
  const TempFolder folder;
  std::vector<std::pair<std::string, std::string>> first;
  for (const auto& world : worlds) {
    auto all = arguments;
    all.insert(all.end(), {"--devices", world});
    const Outcome outcome = run_in(folder / world, program, all);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto files = files_of(folder / world, compared);
    ASSERT_FALSE(files.empty());
    if (first.empty()) {
      first = files;
    }
    ASSERT_EQ(files.size(), first.size()) << world << " ranks";
    for (size_t i = 0; i < files.size(); ++i) {
      EXPECT_EQ(files[i].first, first[i].first) << world << " ranks";
      EXPECT_TRUE(files[i].second == first[i].second)
          << files[i].first << " differs at " << world << " ranks";
    }
  }
}

TEST(Programs, LogImagesGivesTheSameBytesAtEveryNumberOfRanks) {
  expect_same_bytes("log_images", {"predict"}, {"1", "2", "3"});
}

TEST(Programs, ALoopOfOnesOwnGivesTheSameBytesAtEveryNumberOfRanks) {
  const TempFolder folder;
  std::vector<std::pair<std::string, std::string>> first;
  for (const auto* ranks : {"1", "2", "3", "7"}) {
    const Outcome outcome = run_program(
        bin_dir() / "muster",
        {"launch", "-n", ranks, (bin_dir() / "own_loop").string(), (folder / ranks).string()});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "mean 0.2\n");
    const auto files = files_of(folder / ranks, compared);
    if (first.empty()) first = files;
    EXPECT_EQ(files, first) << ranks << " ranks";
    EXPECT_FALSE(std::filesystem::exists(folder / ranks / "spool"));
  }
  EXPECT_TRUE(has(first.at(0).second, "\"val/mse\": 3."));
  EXPECT_TRUE(has(first.at(0).second, "\"samples\": 5"));
}

TEST(Programs, LogImagesGivesOneResultWhicheverHookLogs) {
  const TempFolder folder;
  for (const auto* when : {"batch", "epoch"}) {
    const Outcome outcome =
        run_in(folder / when, "log_images", {"predict", "--devices", "2", "--model.when", when});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  EXPECT_EQ(read_file(folder / "batch" / "results.json"),
            read_file(folder / "epoch" / "results.json"));
}

TEST(Programs, MattingGivesTheSameBytesAtEveryNumberOfRanks) {
  expect_same_bytes("matting", {"validate", "--trainer.limit_val_batches", "5"}, {"1", "2", "3"});
  expect_same_bytes("matting", {"predict", "--trainer.limit_predict_batches", "2"}, {"1", "5"});
}

TEST(Programs, ACommandKeepsWhatAnotherWroteIntoTheFolder) {
  const TempFolder folder;
  const std::vector<std::string> limits{"--trainer.limit_val_batches", "1",
                                        "--trainer.limit_predict_batches", "1"};
  auto validate = limits;
  validate.insert(validate.begin(), "validate");
  auto predict = limits;
  predict.insert(predict.begin(), "predict");
  ASSERT_EQ(run_in(folder / "run", "matting", validate).exit_code, 0);
  const auto before = read_file(folder / "run" / "tables" / "validate-val.csv");
  ASSERT_EQ(run_in(folder / "run", "matting", predict).exit_code, 0);
  EXPECT_EQ(read_file(folder / "run" / "tables" / "validate-val.csv"), before);
  const auto results = read_file(folder / "run" / "results.json");
  EXPECT_TRUE(has(results, "\"validate\""));
  EXPECT_TRUE(has(results, "\"predict\""));
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "spool"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "errors"));
}

TEST(Programs, WhatSomebodyElsePutIntoTheFolderStays) {
  const TempFolder folder;
  const std::vector<std::string> theirs{"media/holiday.png", "predictions/theirs.csv",
                                        "spool/note.txt"};
  for (const auto& name : theirs) {
    write_file_atomically(folder / "run" / name, "mine");
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(run_in(folder / "run", "matting", {"predict", "--trainer.limit_predict_batches", "1"})
                  .exit_code,
              0);
    for (const auto& name : theirs) {
      EXPECT_TRUE(std::filesystem::exists(folder / "run" / name)) << name;
    }
  }
  EXPECT_EQ(files_of(folder / "run", {"predictions"}).size(), 2U);
}

TEST(Programs, ClosedStandardStreamsPutNoMessageIntoAFileOfTheRun) {
  const TempFolder folder;
  const std::string run_dir = (folder / "run").string();
  const std::string command = (bin_dir() / "matting").string() +
                              " validate --trainer.limit_val_batches 1 --run_dir " + run_dir;
  ASSERT_EQ(run_program("sh", {"-c", "exec " + command + " <&- >&- 2>&-"}).exit_code, 0);
  for (const auto& [name, content] : files_of(run_dir, {"wandb", "tensorboard", "metrics.csv"})) {
    EXPECT_EQ(content.find("samples in"), std::string::npos) << name;
    EXPECT_EQ(content.find("  val/unknown/sad "), std::string::npos) << name;
  }
}

TEST(Programs, BadInputHasItsExitCodeAndOneMessage) {
  const TempFolder folder;
  const auto expect = [&](int code, const std::string& part, std::vector<std::string> arguments) {
    const Outcome outcome = run_in(folder / "run", "matting", std::move(arguments));
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_TRUE(has(outcome.err, part));
    EXPECT_EQ(outcome.err.find("terminate called"), std::string::npos);
  };
  expect(2, "model.radius", {"validate", "--model.radious", "3"});
  expect(2, "model.radius", {"validate", "--model.radius", "wide"});
  expect(2, "model.radius", {"validate", "--model.radious", "3", "--devices", "2"});
  expect(2, "trainer.limit_val_batches", {"validate", "--trainer.limit_val_batchs", "3"});
  expect(2, "nowhere.safetensors", {"validate", "--ckpt_path", "nowhere.safetensors"});
  expect(2, "did you mean validate", {"validat"});
}

TEST(Programs, AnUnreadableImageIsNamedWithExitCode65) {
  const TempFolder folder;
  const auto icons = folder / "icons";
  std::filesystem::create_directories(icons);
  for (const char letter : std::string{"abcdefghi"}) {
    write_file_atomically(icons / (std::string{"icon-"} + letter + ".png"),
                          "\x89PNG\r\n\x1a\nthis is none");
  }
  for (const auto* devices : {"1", "2"}) {
    const Outcome outcome =
        run_in(folder / "run", "matting",
               {"validate", "--data.icons", icons.string(), "--devices", devices});
    EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "icon-b.png"));
    EXPECT_TRUE(has(outcome.err, "during validate, epoch 0, loader 0, loading batch "));
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / "errors"));
  }
}

TEST(Programs, TheWrittenConfigurationRepeatsTheRun) {
  const TempFolder folder;
  ASSERT_EQ(
      run_in(folder / "run", "log_images", {"predict", "--model.when", "epoch", "--seed", "3"})
          .exit_code,
      0);
  const auto results = read_file(folder / "run" / "results.json");
  const auto config = read_file(folder / "run" / "config.yaml");
  write_file_atomically(folder / "config.yaml", config);
  std::filesystem::remove(folder / "run" / "results.json");
  const Outcome again = run_program(bin_dir() / "log_images",
                                    {"predict", "--config", (folder / "config.yaml").string()});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(read_file(folder / "run" / "results.json"), results);
  EXPECT_EQ(read_file(folder / "run" / "config.yaml"), config);
  const Outcome shown =
      run_program(bin_dir() / "log_images",
                  {"predict", "--config", (folder / "config.yaml").string(), "--print_config"});
  EXPECT_EQ(shown.out, config);
}

TEST(Programs, AnInterruptIsNamedAlsoByRanksThatGetAnotherSignalForIt) {
  for (const auto* ranks : {"1", "2"}) {
    const TempFolder folder;
    const Outcome outcome = run_program(
        "/usr/bin/timeout",
        {"--foreground", "--preserve-status", "-s", "INT", "3", (bin_dir() / "minimal").string(),
         "fit", "--devices", ranks, "--run_dir", (folder / "run").string(), "--trainer.max_epochs",
         "100000", "--trainer.limit_train_batches", "100"});
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "SIGINT came"));
    EXPECT_FALSE(has(outcome.err, "SIGTERM"));
  }
}

TEST(Programs, ATrainingThatIsToldToStopSavesWhereItIsAndCanGoOn) {
  for (const auto* ranks : {"1", "2"}) {
    const TempFolder folder;
    const std::string run = (folder / "run").string();
    const std::vector<std::string> minimal{"fit",    "--devices",
                                           ranks,    "--run_dir",
                                           run,      "--trainer.max_epochs",
                                           "100000", "--trainer.limit_train_batches",
                                           "100"};
    std::vector<std::string> stopped{"--preserve-status", "-s", "TERM", "3",
                                     (bin_dir() / "minimal").string()};
    stopped.insert(stopped.end(), minimal.begin(), minimal.end());
    const Outcome outcome = run_program("/usr/bin/timeout", stopped);
    EXPECT_EQ(outcome.exit_code, 143) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "SIGTERM came"));
    EXPECT_FALSE(std::filesystem::exists(folder / "run/spool"));

    const auto last = checkpoint_moment(folder / "run/checkpoints/last.ckpt");
    ASSERT_TRUE(last.has_value());
    EXPECT_TRUE(has(read_file(folder / "run/results.json"),
                    "\"steps\": " + std::to_string(last->global_step)));
    auto resumed = minimal;
    resumed.insert(resumed.end(), {"--ckpt_path", "last", "--trainer.max_steps",
                                   std::to_string(last->global_step + 7)});
    const Outcome rest = run_program(bin_dir() / "minimal", resumed);
    EXPECT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(checkpoint_moment(folder / "run/checkpoints/last.ckpt")->global_step,
              last->global_step + 7);
  }
}

}  // namespace
}  // namespace muster::test
