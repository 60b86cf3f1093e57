#include <gtest/gtest.h>
#include <muster/base/digest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/base/text.h>
#include <muster/track/csv_logger.h>
#include <muster/track/report.h>
#include <muster/track/results.h>

#include <cmath>

#include "src/track/report_parts_internal.h"
#include "track/support.h"

namespace muster {
namespace {

using test::make_image;
using test::TempDir;

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

std::string page_of(const TempDir& dir) {
  write_report(dir.path());
  return read_file(dir.path() / "report.html");
}

TEST(Report, RoundsForReading) {
  EXPECT_EQ(track::readable(12), "12");
  EXPECT_EQ(track::readable(4.36912345), "4.369");
  EXPECT_EQ(track::readable(0.014559), "0.01456");
  EXPECT_EQ(track::readable(12345.678), "12345.7");
  EXPECT_EQ(track::readable(3.9e-16), "3.9e-16");
  EXPECT_EQ(track::readable(std::nan("")), "NaN");
  EXPECT_EQ(track::readable(-INFINITY), "-Infinity");
}

TEST(Report, EscapesEveryTextOfTheRun) {
  const TempDir dir;
  const std::string hostile = "\"><script>alert(1)</script>' &\xff";
  const auto image = make_image(dir.path() / "media", hostile, 0, 0, hostile);
  replace_stage(dir.path(),
                {.stage = "validate", .samples = 1, .metrics = {{hostile, 1}, {hostile + "/a", 2}}},
                std::vector{image});
  write_table(dir.path(), {.stage = "validate",
                           .name = "t",
                           .columns = {hostile, "loss"},
                           .rows = {{0, {hostile, 0.5}}}});
  auto csv = make_csv_logger({.run_dir = dir.path()});
  csv->log_metrics({.step = 0, .values = {{hostile, 1}}});
  csv->log_metrics({.step = 1, .values = {{hostile, 2}}});
  const std::string page = page_of(dir);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(count_of(page, "<script"), 1);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_GE(count_of(page, "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), 6);
}

TEST(Report, AllowsOneScriptByItsDigestAndNothingElse) {
  const TempDir dir;
  replace_stage(dir.path(), {.stage = "predict", .samples = 0}, {});
  const std::string page = page_of(dir);
  const auto begin = page.find("<script>") + 8;
  const std::string digest =
      test::from_hex(sha256_hex(page.substr(begin, page.find("</script>") - begin)));
  EXPECT_NE(page.find("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src "
                      "'sha256-" +
                      base64(digest) + "'"),
            std::string::npos);
}

TEST(Report, ShowsEachMetricUnderItsFullNameWithEveryDigit) {
  const TempDir dir;
  replace_stage(dir.path(),
                {.stage = "validate",
                 .samples = 2,
                 .metrics = {{"val/unknown/sad", 4.123456789012345},
                             {"val/unknown/mse", 0.25},
                             {"val/all/sad", 1e-300},
                             {"loss", std::nan("")},
                             {"none", std::nullopt}}},
                {});
  const std::string page = page_of(dir);
  EXPECT_NE(page.find("<bdi>val/unknown/sad</bdi></th><td class=\"num\">4.123456789012345</td>"),
            std::string::npos);
  EXPECT_NE(page.find("title=\"val/all/sad = 1e-300\""), std::string::npos);
  EXPECT_NE(page.find("<bdi>loss</bdi></th><td class=\"num\">NaN</td>"), std::string::npos);
  EXPECT_NE(page.find("<bdi>none</bdi></th><td class=\"num\">no sample</td>"), std::string::npos);
}

TEST(Report, PutsTheWorstSampleFirst) {
  track::ReportTable table{.name = "val",
                           .columns = {"index", "name", "all/n", "all/sad"},
                           .is_number = {true, false, true, true},
                           .rows = {{"0", "good", "9", "0.5"},
                                    {"1", "empty", "0", ""},
                                    {"2", "broken", "9", "NaN"},
                                    {"3", "bad", "1", "12.25"}}};
  const std::string html = track::table_part({.name = "validate"}, table);
  EXPECT_LT(html.find("broken"), html.find("bad<"));
  EXPECT_LT(html.find("bad<"), html.find("good"));
  EXPECT_LT(html.find("good"), html.find("empty"));
  EXPECT_NE(html.find("the worst by <bdi>all/sad</bdi> first"), std::string::npos);
}

TEST(Report, ShowsPicturesInOrderAndSaysWhatIsMissing) {
  const TempDir media;
  track::ReportStage stage{.name = "predict"};
  for (int i = 0; i < 3; ++i) {
    const auto image = make_image(media.path(), "k", 0, i, "caption " + std::to_string(i), 4, 3, i);
    stage.images.push_back({.key = image.key,
                            .index = image.index,
                            .caption = image.caption,
                            .width = 4,
                            .height = 3,
                            .sha256 = image.sha256});
  }
  std::filesystem::remove(media.path() / (stage.images[1].sha256 + ".png"));
  stage.images.push_back(
      {.key = "k", .index = 3, .caption = "caption 3", .sha256 = "../../etc/passwd"});
  track::PictureBudget budget;
  const std::string html = track::gallery_part(stage, media.path(), budget);
  EXPECT_EQ(budget.left_out, 2);
  EXPECT_EQ(count_of(html, "<img"), 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_LT(html.find("<bdi>caption " + std::to_string(i)),
              html.find("<bdi>caption " + std::to_string(i + 1)));
  }
  EXPECT_NE(html.find("base64," + base64(test::gray_png(4, 3, 2))), std::string::npos);

  track::PictureBudget small{.bytes_left = test::gray_png(4, 3, 0).size() + 1};
  EXPECT_EQ(count_of(track::gallery_part(stage, media.path(), small), "<img"), 1);
  EXPECT_EQ(small.left_out, 3);
}

TEST(Report, DrawsACurveWhereThereAreTwoSteps) {
  const TempDir dir;
  auto csv = make_csv_logger({.run_dir = dir.path()});
  csv->log_metrics({.step = 0, .values = {{"one", 1}, {"twice at a step", 1}}});
  csv->log_metrics({.step = 0, .values = {{"twice at a step", 2}}});
  csv->log_metrics({.step = 5, .values = {{"gap", std::nan("")}, {"many", 1e308}}});
  for (int i = 6; i < 5000; ++i) {
    csv->log_metrics({.step = i, .values = {{"many", i == 3000 ? -1e308 : std::sin(i)}}});
  }
  const std::string page = page_of(dir);
  EXPECT_EQ(count_of(page, "<svg"), 1);
  EXPECT_NE(page.find("<span>step 5 to 4999</span><span>-1e+308 to 1e+308</span>"),
            std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(page.find("inf,"), std::string::npos);
  EXPECT_LT(page.size(), 40000);
}

TEST(Report, RefusesResultsThatAreNotItsOwn) {
  const TempDir dir;
  for (const char* broken : {"{", "[1]", R"({"validate": {"images": [{}]}})", R"({"fit": 3})",
                             R"({"validate": {"metrics": {"a": {}}}})",
                             R"({"test": {"samples": 1e300}})", R"({"test": {"samples": 1.5}})"}) {
    write_file_atomically(dir.path() / "results.json", broken);
    EXPECT_THROW(write_report(dir.path()), Error) << broken;
  }
  write_file_atomically(dir.path() / "results.json", "{}" + std::string(3, '\0'));
  EXPECT_THROW(write_report(dir.path()), Error);
}

TEST(Report, IsTheSameForTheSameRunFolder) {
  const TempDir dir;
  const auto image = make_image(dir.path() / "media", "k", 0, 0, "c");
  replace_stage(dir.path(), {.stage = "predict", .samples = 1}, std::vector{image});
  EXPECT_EQ(page_of(dir), page_of(dir));
}

}  // namespace
}  // namespace muster
