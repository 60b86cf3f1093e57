#include "src/cli/invocation_internal.h"
#include "support/texts.h"

#include <muster/base/error.h>
#include <muster/cli/cli.h>

#include <gtest/gtest.h>

#include <optional>

namespace muster::test {
namespace {

struct ModelOptions {
  std::string text = "default";
  std::filesystem::path file{"a"};
  std::optional<std::string> tag{};
  std::vector<int64_t> sizes{1};
  double x = 0.0;
};
struct DataOptions {
  int64_t batch_size = 1;
};

TEST(Cli, GivesTheProgramItsOptionsAsStructs) {
  Cli cli{parse_arguments(
      "prog", {"validate", "--model.text", "123", "--model.file", "007", "--model.x", "-1",
               "--model.sizes", "[3, 4]", "--model.tag", "v1", "--data.batch_size=5"})};
  const auto [model, data] = cli.options<ModelOptions, DataOptions>();
  EXPECT_EQ(model.text, "123");
  EXPECT_EQ(model.file, "007");
  EXPECT_EQ(model.tag, "v1");
  EXPECT_EQ(model.x, -1.0);
  EXPECT_EQ(model.sizes, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(data.batch_size, 5);
}

TEST(Cli, ShowsItsConfigurationAndEnds) {
  Cli cli{parse_arguments("prog", {"test", "--print_config", "--model.text", "a: b"})};
  testing::internal::CaptureStdout();
  EXPECT_THROW((cli.options<ModelOptions, DataOptions>()), EarlyExit);
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(has(shown, "text: \"a: b\""));
  EXPECT_TRUE(has(shown, "run_dir: runs/prog"));
}

TEST(Cli, HelpsAndChecksAlsoWhereAProgramHasNoOptions) {
  testing::internal::CaptureStdout();
  EXPECT_THROW(Cli{parse_arguments("prog", {"--help"})}.trainer(), EarlyExit);
  EXPECT_TRUE(has(testing::internal::GetCapturedStdout(), "usage: prog fit|validate"));
  try {
    Cli{parse_arguments("prog", {"test", "--model.lr", "1"})}.trainer();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_TRUE(has(error.what(), "model.lr: unknown key"));
  }
}

}  // namespace
}  // namespace muster::test
