#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/track/compare_runs.h>
#include <muster/track/results.h>

#include "tests/base/expect_error.h"
#include "track/support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace muster {
namespace {

using test::TempDir;

/// Two run folders, alike until a test changes one.
class CompareRuns : public testing::Test {
 protected:
  CompareRuns() { write(); }

  void write() {
    for (const auto& run_dir : {one, two}) {
      replace_stage(run_dir, report, images);
      write_table(run_dir, table);
      write_file_atomically(run_dir / "predictions" / "000003-a.png", "pixels");
    }
  }

  /// What differs, each as PLACE|FIRST|SECOND|MORE.
  std::vector<std::string> differences() {
    std::vector<std::string> texts;
    for (const auto& d : compare_runs(one, two).differences) {
      texts.push_back(d.what + "|" + d.first + "|" + d.second + "|" + std::to_string(d.more));
    }
    return texts;
  }

  using Texts = std::vector<std::string>;

  TempDir dir;
  std::filesystem::path one = dir / "one";
  std::filesystem::path two = dir / "two";
  Report report{.stage = "validate",
                .samples = 3,
                .metrics = {{"a", 0.1}, {"none", std::nullopt}, {"odd", std::nan("")}}};
  ImageRecord image{
      .key = "k", .step = 4, .index = 2, .caption = "c", .width = 5, .height = 6, .sha256 = "00"};
  std::vector<ImageRecord> images{image};
  Table table{.stage = "validate",
              .name = "t",
              .columns = {"name", "x", "y"},
              .rows = {{0, {"n0", 0.5, 1.0}}, {7, {"n7", 1.5, Cell{}}}}};
};

TEST_F(CompareRuns, FindsFoldersThatAreAlikeEqualAndSaysHowMuchThatWas) {
  const auto comparison = compare_runs(one, two);
  EXPECT_TRUE(comparison.differences.empty());
  EXPECT_EQ(comparison.contents.files, 3);
  EXPECT_EQ(comparison.contents.metrics, 3);
  EXPECT_EQ(comparison.contents.samples, 3);
  EXPECT_EQ(comparison.contents.images, 1);
}

TEST_F(CompareRuns, LooksAtNothingElseInTheFolder) {
  write_file_atomically(one / "metrics.csv", "step\n");
  write_file_atomically(two / "media" / "x.png", "");
  EXPECT_EQ(differences(), Texts{});
}

TEST_F(CompareRuns, NamesMetricsByTheirValuesInAnyOrder) {
  report.metrics = {{"odd", -0.0}, {"none", 0.0}, {"a", std::nextafter(0.1, 1)}, {"new", 3.0}};
  replace_stage(two, report, images);
  EXPECT_EQ(differences(), Texts{"metric a of validate|0.1|0.10000000000000002|3"});
  report.metrics = {{"a", 0.1}, {"odd", std::nan("")}, {"none", std::nullopt}};
  replace_stage(two, report, images);
  EXPECT_EQ(differences(), Texts{"place 2 in the order of the metrics of validate|metric none of "
                                 "validate|metric odd of validate|0"});
  report.metrics = {{"a", 0.1}, {"none", 0.0}};
  replace_stage(two, report, images);
  EXPECT_EQ(differences(), Texts{"metric none of validate|no value|0|1"});
}

TEST_F(CompareRuns, NamesSamplesAndStages) {
  report.samples = 2;
  replace_stage(two, report, images);
  replace_stage(one, {.stage = "test", .samples = 1}, {});
  EXPECT_EQ(differences(), (Texts{"stage test|there|missing|0", "samples of validate|3|2|0"}));
}

TEST_F(CompareRuns, NamesImagesByTheirRecords) {
  ImageRecord other = image;
  other.sha256 = "11";
  images = {other};
  replace_stage(two, report, images);
  EXPECT_EQ(differences(), Texts{"image k \"c\" of sample 2, step 4, of validate|5 x 6, sha256 "
                                 "00|5 x 6, sha256 11|0"});
  other = image;
  other.index = 1;
  images = {image, other};
  replace_stage(two, report, images);
  EXPECT_EQ(differences(),
            Texts{"image k \"c\" of sample 1, step 4, of validate|missing|5 x 6, sha256 00|0"});
  replace_stage(one, report, std::vector{other, image});
  EXPECT_EQ(
      differences(),
      Texts{"place 1 in the order of the images of validate|image k \"c\" of sample 1, step 4, "
            "of validate|image k \"c\" of sample 2, step 4, of validate|0"});
}

TEST_F(CompareRuns, NamesACellByItsSampleAndColumn) {
  table.rows[1].cells = {"n7", 1.25, 2.0};
  write_table(two, table);
  EXPECT_EQ(differences(), Texts{"tables/validate-t.csv, sample 7 (n7), column x|1.5|1.25|1"});
  table.rows[1].cells = {"n7", 1.5, 2.0};
  write_table(two, table);
  EXPECT_EQ(differences(), Texts{"tables/validate-t.csv, sample 7 (n7), column y|empty|2|0"});
}

TEST_F(CompareRuns, NamesARowThatOnlyOneTableHas) {
  table.rows.insert(table.rows.begin() + 1, {3, {"n3", 1.0, 1.0}});
  write_table(two, table);
  EXPECT_EQ(differences(), Texts{"tables/validate-t.csv, sample 3 (n3)|missing|there|0"});
  write_table(one, table);
  table.rows.erase(table.rows.begin());
  write_table(two, table);
  EXPECT_EQ(differences(), Texts{"tables/validate-t.csv, sample 0 (n0)|there|missing|0"});
}

TEST_F(CompareRuns, NamesColumns) {
  table.columns[2] = "z";
  write_table(two, table);
  EXPECT_EQ(differences(), Texts{"tables/validate-t.csv, column 4|y|z|0"});
}

TEST_F(CompareRuns, NamesFilesThatDifferOrThatOneLacks) {
  write_file_atomically(two / "predictions" / "000003-a.png", "pixel!");
  write_file_atomically(two / "predictions" / "000004-b.png", "more");
  write_file_atomically(one / "predictions" / "notes" / "x.txt", "");
  EXPECT_EQ(differences(),
            Texts{"predictions/000003-a.png (sample 3) from byte 5 on|6 bytes|6 bytes|2"});
  write_file_atomically(two / "predictions" / "000003-a.png", "pixels and more");
  EXPECT_EQ(differences(),
            Texts{"predictions/000003-a.png (sample 3) from byte 6 on|6 bytes|15 bytes|2"});
  std::filesystem::remove(two / "predictions" / "000003-a.png");
  EXPECT_EQ(differences(), Texts{"predictions/000003-a.png (sample 3)|6 bytes|missing|2"});
}

TEST_F(CompareRuns, DoesNotFindFilesEqualThatCannotBeRead) {
  for (const auto& run_dir : {one, two}) {
    // The memory of a process has nothing at address 0, so that reading it fails.
    std::filesystem::create_symlink("/proc/self/mem", run_dir / "predictions/000004-b.png");
  }
  const Error error = test::error_of([&] { compare_runs(one, two); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(test::contains(error.what(), "cannot read " + one.string()));
}

TEST_F(CompareRuns, FindsWhatDiffersInLongFiles) {
  std::string text(1'000'000, 'x');
  write_file_atomically(one / "predictions" / "long", text);
  text[700'000] = 'y';
  write_file_atomically(two / "predictions" / "long", text);
  EXPECT_EQ(differences(),
            Texts{"predictions/long from byte 700000 on|1000000 bytes|1000000 bytes|0"});
}

TEST_F(CompareRuns, NamesTheLineWhereOnlyTheFormDiffers) {
  const std::string results = read_file(one / "results.json");
  write_file_atomically(two / "results.json", results + "\n");
  EXPECT_EQ(differences(), Texts{"results.json, line 22|the end of the file||0"});
  write_file_atomically(two / "results.json", results);
  write_file_atomically(two / "tables" / "validate-t.csv", "index,name,x,y\n0,n0,.5,1\n");
  write_file_atomically(one / "tables" / "validate-t.csv", "index,name,x,y\n0,n0,\".5\",1\n");
  EXPECT_EQ(differences(), Texts{"tables/validate-t.csv, line 2|0,n0,\".5\",1|0,n0,.5,1|0"});
  write_file_atomically(one / "tables" / "validate-t.csv", "");
  EXPECT_EQ(differences(),
            Texts{"tables/validate-t.csv, line 1|the end of the file|index,name,x,y|0"});
}

TEST_F(CompareRuns, NeedsResultsInBothFolders) {
  write_file_atomically(two / "results.json", "{\"validate\": 3}");
  EXPECT_THROW(compare_runs(one, two), Error);
  std::filesystem::remove(two / "results.json");
  EXPECT_THROW(compare_runs(one, two), Error);
}

TEST_F(CompareRuns, NamesWhatDiffersInTheEnvironmentButTheNumberOfRanks) {
  write_file_atomically(one / "environment.json",
                        R"({"torch": "2", "threads": 1, "world_size": 1, "old": true})");
  write_file_atomically(two / "environment.json",
                        R"({"torch": "2", "threads": 2, "world_size": 2, "new": "x"})");
  const auto found = compare_environments(one, two);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].what + found[0].first + found[0].second, "threads12");
  EXPECT_EQ(found[1].what + found[1].first + found[1].second, "oldtruemissing");
  EXPECT_EQ(found[2].what + found[2].first + found[2].second, "newmissing\"x\"");
  write_file_atomically(two / "environment.json", "no JSON");
  EXPECT_THROW(compare_environments(one, two), Error);
}

}  // namespace
}  // namespace muster
