#include "src/cli/invocation_internal.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/error.h>
#include <muster/base/files.h>

#include <gtest/gtest.h>

namespace muster::test {
namespace {

std::string message_of(const std::vector<std::string>& arguments) {
  try {
    static_cast<void>(trainer_options(parse_arguments("prog", arguments)));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Arguments, ShortFormsAreKeysOfTheTrainer) {
  const auto invocation = parse_arguments(
      "prog", {"validate", "--devices", "3", "--run_dir", "007", "--seed=5", "--threads", "auto",
               "--trainer.logger", "false", "--trainer.limit_val_batches", "0.5", "--model.name",
               "unet", "--model.inner.lr=1e-3"});
  const auto options = trainer_options(invocation);
  EXPECT_EQ(invocation.command, "validate");
  EXPECT_EQ(options.devices, 3);
  EXPECT_EQ(options.run_dir, "007");
  EXPECT_EQ(options.seed, 5);
  EXPECT_EQ(options.threads.count, 0);
  EXPECT_FALSE(options.logger);
  EXPECT_EQ(options.limit_val_batches.of(9, ""), 4);
  EXPECT_EQ(invocation.config.find("model")->find("name")->as_string(), "unet");
  EXPECT_EQ(invocation.config.find("model")->find("inner")->find("lr")->as_double(), 1e-3);
}

TEST(Arguments, TheCommandLineWinsOverTheFile) {
  const TempFolder folder;
  write_file_atomically(folder / "c.yaml",
                        "trainer: {devices: 4, seed: 9}\nmodel: {name: a}\nckpt_path: w\n");
  const auto invocation =
      parse_arguments("prog", {"test", "--devices", "2", "--config", (folder / "c.yaml").string()});
  EXPECT_EQ(trainer_options(invocation).devices, 2);
  EXPECT_EQ(trainer_options(invocation).seed, 9);
  EXPECT_EQ(invocation.ckpt_path, "w");
  EXPECT_EQ(trainer_options(invocation).run_dir, "runs/prog");
}

TEST(Arguments, AnUnknownNameBringsTheClosestOne) {
  EXPECT_TRUE(has(message_of({"validate", "--trainer.limit_val_batchs", "2"}),
                  "trainer.limit_val_batches"));
  EXPECT_TRUE(has(message_of({"validate", "--device", "2"}), "--devices"));
  EXPECT_TRUE(has(message_of({"validate", "--trainr.devices", "2"}), "--devices"));
  EXPECT_TRUE(
      has(message_of({"validate", "--limit_val_batches", "2"}), "--trainer.limit_val_batches"));
  EXPECT_TRUE(has(message_of({"validat"}), "validate"));
  EXPECT_TRUE(has(message_of({"validate", "--xyzzy", "2"}), "unknown option --xyzzy"));
}

TEST(Arguments, AWrongTypeIsNamed) {
  EXPECT_TRUE(has(message_of({"validate", "--devices", "two"}), "trainer.devices"));
  EXPECT_TRUE(has(message_of({"validate", "--devices", "0"}), "1 to 1024"));
  EXPECT_TRUE(has(message_of({"validate", "--threads", "some"}), "auto"));
  EXPECT_TRUE(
      has(message_of({"validate", "--trainer.limit_val_batches", "-1"}), "limit_val_batches"));
  EXPECT_TRUE(
      has(message_of({"validate", "--trainer.limit_val_batches", "1.5"}), "limit_val_batches"));
  EXPECT_TRUE(has(message_of({"validate", "--trainer.logger", "perhaps"}), "trainer.logger"));
  EXPECT_TRUE(has(message_of({"validate", "--trainer", "2"}), "unknown option --trainer"));
}

TEST(Arguments, WhatIsMissingIsNamed) {
  EXPECT_TRUE(has(message_of({}), "a command is missing"));
  EXPECT_TRUE(has(message_of({"validate", "--devices"}), "--devices needs a value"));
  EXPECT_TRUE(has(message_of({"validate", "--config", "nowhere.yaml"}), "nowhere.yaml"));
  EXPECT_TRUE(has(message_of({"validate", "predict"}), "two commands"));
}

TEST(Arguments, AFileWithAnUnknownSectionBringsTheClosestOne) {
  const TempFolder folder;
  write_file_atomically(folder / "c.yaml", "traner: {devices: 4}\n");
  EXPECT_TRUE(has(message_of({"validate", "--config", (folder / "c.yaml").string()}), "trainer"));
  write_file_atomically(folder / "c.yaml", "[1, 2]\n");
  EXPECT_TRUE(
      has(message_of({"validate", "--config", (folder / "c.yaml").string()}), "expected sections"));
}

}  // namespace
}  // namespace muster::test
