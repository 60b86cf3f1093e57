#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/track/results.h>

#include <cmath>

#include "track/support.h"

namespace muster {
namespace {

using test::TempDir;

Report validation() {
  return {.stage = "validate",
          .epoch = 3,
          .step = 40,
          .samples = 12,
          .metrics = {{"val/loss", 0.1}, {"none", std::nullopt}, {"odd", std::nan("")}}};
}

std::string results(const TempDir& dir) { return read_file(dir.path() / "results.json"); }

TEST(Results, WritesTheSchemaOfAValidation) {
  const TempDir dir;
  const ImageRecord image{.key = "k",
                          .step = 40,
                          .index = 2,
                          .caption = "a <b>",
                          .width = 5,
                          .height = 4,
                          .sha256 = "00ff",
                          .file = "/tmp/x.png"};
  replace_stage(dir.path(), validation(), std::vector{image});
  EXPECT_EQ(results(dir), R"({
  "validate": {
    "metrics": {
      "val/loss": 0.1,
      "none": null,
      "odd": "NaN"
    },
    "samples": 12,
    "images": [
      {
        "key": "k",
        "step": 40,
        "index": 2,
        "caption": "a \u003cb\u003e",
        "width": 5,
        "height": 4,
        "sha256": "00ff"
      }
    ]
  }
}
)");
}

TEST(Results, WritesPredictWithoutMetricsUnlessAHookLoggedOne) {
  const TempDir dir;
  replace_stage(dir.path(), {.stage = "predict", .samples = 4}, {});
  EXPECT_EQ(results(dir), "{\n  \"predict\": {\n    \"samples\": 4,\n    \"images\": []\n  }\n}\n");
  replace_stage(dir.path(), {.stage = "predict", .samples = 4, .metrics = {{"m", 1}}}, {});
  EXPECT_NE(results(dir).find("\"images\": [],\n    \"metrics\": {\n      \"m\": 1\n"),
            std::string::npos);
}

TEST(Results, WritesOfFitEpochsAndSteps) {
  const TempDir dir;
  replace_stage(dir.path(), {.stage = "fit", .epoch = 2, .step = 60}, {});
  EXPECT_EQ(
      results(dir),
      "{\n  \"fit\": {\n    \"metrics\": {},\n    \"epochs\": 2,\n    \"steps\": 60\n  }\n}\n");
}

TEST(Results, KeepsTheOtherStagesByteForByteInTheirOrder) {
  const TempDir dir;
  const std::string fit = "{\"metrics\":{ \"x\" : 1.50e0, \"{\\\"}\" : \"]\" },\n \"epochs\": 1}";
  write_file_atomically(dir.path() / "results.json",
                        "{\"predict\": {\"samples\": 4},\n\"fit\": " + fit + "\n}");
  replace_stage(dir.path(), validation(), {});
  const std::string once = results(dir);
  EXPECT_NE(once.find("\"fit\": " + fit + ",\n"), std::string::npos) << once;
  EXPECT_LT(once.find("\"fit\""), once.find("\"validate\""));
  EXPECT_LT(once.find("\"validate\""), once.find("\"predict\": {\"samples\": 4}"));
  replace_stage(dir.path(), validation(), {});
  EXPECT_EQ(results(dir), once);
}

TEST(Results, RefusesAFileThatIsNoJson) {
  const TempDir dir;
  std::vector<std::string> files{"", "{", "[]", "{\"fit\": }", "{\"fit\": 1} x"};
  files.push_back("{\"fit\": {}}" + std::string(3, '\0'));  // as a power cut leaves it
  for (const auto& broken : files) {
    write_file_atomically(dir.path() / "results.json", broken);
    EXPECT_THROW(replace_stage(dir.path(), validation(), {}), Error) << broken;
    EXPECT_EQ(results(dir), broken);
  }
  EXPECT_THROW(replace_stage(dir.path(), {.stage = "train"}, {}), Error);
}

Table table() {
  return {.stage = "validate",
          .name = "val",
          .columns = {"image_name", "unknown/sad"},
          .rows = {{0, {"a,b", 0.1}}, {4, {"=1+1", std::monostate{}}}}};
}

TEST(Tables, WriteTheIndexThenTextsThenNumbers) {
  const TempDir dir;
  write_table(dir.path(), table());
  EXPECT_EQ(read_file(dir.path() / "tables" / "validate-val.csv"),
            "index,image_name,unknown/sad\n0,\"a,b\",0.1\n4,'=1+1,\n");
}

TEST(Tables, RefuseRowsThatDoNotRiseOrFit) {
  const TempDir dir;
  auto twice = table();
  twice.rows[1].index = 0;
  EXPECT_THROW(write_table(dir.path(), twice), Error);
  auto narrow = table();
  narrow.rows[0].cells.pop_back();
  EXPECT_THROW(write_table(dir.path(), narrow), Error);
  auto astray = table();
  astray.name = "../val";
  EXPECT_THROW(write_table(dir.path(), astray), Error);
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "tables"));
}

TEST(Tables, GoWithTheStageThatIsRunAgain) {
  const TempDir dir;
  remove_stage_tables(dir.path(), "test");
  write_table(dir.path(), table());
  auto of_test = table();
  of_test.stage = "test";
  write_table(dir.path(), of_test);
  remove_stage_tables(dir.path(), "validate");
  const auto left = test::files_below(dir.path());
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left[0].filename(), "test-val.csv");
}

}  // namespace
}  // namespace muster
