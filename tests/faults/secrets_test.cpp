#include <gtest/gtest.h>
#include <muster/base/files.h>

#include <filesystem>
#include <string>

#include "tests/faults/job.h"

namespace muster::test {

namespace {

namespace fs = std::filesystem;

const std::string key_of_environment = "0123456789abcdef0123456789SentinelOfEnv1";
const std::string key_of_options = "SentinelOfOptions";

Scenario with_secrets() {
  return {.options = {"--trainer.max_epochs", "1", "--trainer.logger", "true", "--model.api_key",
                      key_of_options, "--model.tracking_uri", "https://me:hunter22@host/project"},
          .environment = {"WANDB_API_KEY=" + key_of_environment}};
}

void expect_no_secret(const std::string& text, const std::string& where) {
  for (const auto& secret : {key_of_environment, key_of_options, std::string{"hunter22"}}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << " stands in " << where;
  }
}

void expect_no_secret_in(const fs::path& folder) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (entry.is_regular_file()) {
      expect_no_secret(read_file_if_there(entry.path()).value_or(""), entry.path());
      ++files;
    }
  }
  EXPECT_GT(files, 4);
}

TEST_F(Faults, S08_KeysAreInNoFileAndNoLineOfATraining) {
  const Ended ended = expect(with_secrets(), {});
  expect_no_secret(ended.out + ended.err, "what it printed");
  expect_no_secret_in(run_dir());
  const auto config = read_file_if_there(run_dir() / "config.yaml").value_or("");
  EXPECT_TRUE(has(config, "api_key: \"[redacted]\""));
  EXPECT_TRUE(has(config, "https://[redacted]@host/project"));
}

TEST_F(Faults, S08_KeysAreInNoErrorFileAndNoMessage) {
  Scenario scenario = with_secrets();
  scenario.fault = "step:1:3:throw_key";
  const Ended ended = expect(scenario, {.exit_code = 1,
                                        .says = "401: the key \\[redacted\\] is not known at "
                                                "https://\\[redacted\\]@host"});
  expect_no_secret(ended.out + ended.err, "what it printed");
  expect_no_secret_in(run_dir());
  EXPECT_TRUE(has(error_file(1), "[redacted]"));
}

TEST_F(Faults, S08_AProgramDoesNotTakeAKeyOnTheCommandLine) {
  Scenario scenario;
  scenario.ranks = 1;
  scenario.options = {"--wandb_key=" + key_of_options};
  const Ended ended = expect(scenario, {.exit_code = 2, .says = "unknown option --wandb_key"});
  expect_no_secret(ended.out + ended.err, "what it printed");
}

TEST_F(Faults, S08_AKeyThatARunLeftOutIsAskedForAgain) {
  expect(with_secrets(), {});
  const std::string config = run_dir() / "config.yaml";
  Scenario again;
  again.options = {"--config", config};
  expect(again, {.exit_code = 2, .says = "model.api_key: \\[redacted\\] stands where"});
  const Arguments given = with_secrets().options;
  again.options.insert(again.options.end(), given.begin(), given.end());
  expect(again, {});
}

}  // namespace

}  // namespace muster::test
