#include "src/cli/invocation_internal.h"
#include "support/temp_folder.h"
#include "support/texts.h"
#include "tests/base/expect_error.h"

#include <muster/base/error.h>
#include <muster/base/files.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

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

TEST(Arguments, WhatIsGivenForATextIsMeantAsItStands) {
  for (const std::string text : {"007", "1.50", "null", "true", "", "[a-z]+", "{epoch}-{step}",
                                 "-1", "~", "12 # 3", "a: b"}) {
    const auto invocation =
        parse_arguments("prog", {"validate", "--trainer.project", text, "--model.inner.text", text,
                                 "--model.number=-1", "--run_dir", text});
    const auto options = trainer_options(invocation);
    EXPECT_EQ(options.project, text);
    EXPECT_EQ(options.run_dir, text.empty() ? "runs/prog" : text);
    Value defaults = Value::Dict{};
    defaults["inner"]["text"] = "default";
    defaults["number"] = 3;
    const Value model = section_of(invocation, "model", defaults);
    EXPECT_EQ(model.find("inner")->find("text")->as_string(), text);
    EXPECT_EQ(model.find("number")->as_int(), -1);
  }
  const auto quoted = parse_arguments("prog", {"validate", "--trainer.project", "\"12\""});
  EXPECT_EQ(trainer_options(quoted).project, "12");
}

TEST(Arguments, ALaterFileIsLaidOverAnEarlierOne) {
  const TempFolder folder;
  write_file_atomically(folder / "a.yaml", "trainer: {devices: 4, seed: 9}\n");
  write_file_atomically(folder / "b.yaml", "trainer: {seed: 10}\n");
  const auto options =
      trainer_options(parse_arguments("prog", {"test", "--config", (folder / "a.yaml").string(),
                                               "--config", (folder / "b.yaml").string()}));
  EXPECT_EQ(options.devices, 4);
  EXPECT_EQ(options.seed, 10);
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
  EXPECT_TRUE(has(message_of({"validate", "--ckpt_path", ""}), "ckpt_path"));
  EXPECT_TRUE(has(message_of({"validate", "--threads", "4294967297"}), "trainer.threads"));
  EXPECT_TRUE(has(message_of({"validate", "--trainer.timeout", "0"}), "trainer.timeout"));
  EXPECT_TRUE(has(message_of({"validate", "--trainer.timeout", ".nan"}), "trainer.timeout"));
}

TEST(Arguments, WhatIsMissingIsNamed) {
  EXPECT_TRUE(has(message_of({}), "a command is missing"));
  EXPECT_TRUE(has(message_of({"validate", "--devices"}), "--devices needs a value"));
  EXPECT_TRUE(has(message_of({"validate", "--config", "nowhere.yaml"}), "nowhere.yaml"));
  EXPECT_TRUE(has(message_of({"validate", "predict"}), "two commands"));
}

TEST(Arguments, AFileWithoutEndIsReadToABound) {
  const auto error = error_of([] {
    parse_arguments("prog", {"validate", "--config", "/dev/zero"});
  });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(has(error.what(), "/dev/zero has more than")) << error.what();
}

TEST(Arguments, AConfigurationMayComeThroughAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const std::string yaml = "trainer:\n  seed: 7\n";
  ASSERT_EQ(write(ends[1], yaml.data(), yaml.size()), static_cast<ssize_t>(yaml.size()));
  close(ends[1]);
  const auto given =
      parse_arguments("prog", {"validate", "--config", "/dev/fd/" + std::to_string(ends[0])});
  close(ends[0]);
  EXPECT_EQ(trainer_options(given).seed, 7);
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
