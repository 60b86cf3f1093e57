// Means, worst images, and what the outputs show.

#include "apps/muster/matting/memory.h"
#include "apps/muster/matting/output.h"
#include "apps/muster/matting/ranks.h"
#include "apps/muster/matting/terminal.h"
#include "apps/muster/matting/thumbnails.h"

#include "support/temp_folder.h"
#include "support/texts.h"
#include "tests/base/expect_error.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace muster::app {
namespace {

using test::has;

NamedRow row(int64_t index, const std::string& dataset, const std::string& name, double sad,
             std::optional<double> unknown_sad) {
  NamedRow named{.dataset = dataset, .name = name};
  named.row = {
      .index = index, .width = 4, .height = 3, .all = {.n = 12, .values = {{sad, 0.5, 2, 3}}}};
  if (unknown_sad) {
    named.row.unknown = {.n = *unknown_sad < 0 ? 0 : 5};
    if (*unknown_sad >= 0) {
      named.row.unknown->values = {{*unknown_sad, 0.25, 1, 1.5}};
    }
  }
  return named;
}

MattingReport report() {
  MattingReport made{.profile = "dim", .has_trimaps = true, .prediction = "p", .truth = "g"};
  made.rows = {row(0, "", "root", 1, 0.5), row(1, "a", "x", 4, -1), row(2, "a", "y", 2, 0.75),
               row(3, "b", "no trimap", 3, std::nullopt)};
  compute_means(made);
  return made;
}

TEST(MattingReport, MeansAreOverTheImagesThatHavePixels) {
  const auto made = report();
  EXPECT_EQ(made.mean.all.images, 4);
  EXPECT_EQ(made.mean.all.values->sad, 2.5);
  EXPECT_EQ(made.mean.unknown->images, 2);
  EXPECT_EQ(made.mean.unknown->values->sad, 0.625);
  EXPECT_EQ(made.datasets.at("a").unknown->images, 1);
  EXPECT_EQ(made.datasets.at("b").unknown->images, 0);
  EXPECT_FALSE(made.datasets.at("b").unknown->values.has_value());
  EXPECT_EQ(made.datasets.at("").all.images, 1);
}

TEST(MattingReport, TheWorstComeFirstAndThoseWithoutValuesLast) {
  EXPECT_EQ(report().worst_first(), (std::vector<size_t>{2, 0, 1, 3}));
}

TEST(MattingReport, JsonHasTheKeysInTheOrderOfTheInterface) {
  auto made = report();
  made.rows.resize(2);
  compute_means(made);
  std::string json = matting_json(made);
  json.erase(std::remove_if(json.begin(), json.end(), [](char c) { return c == ' ' || c == '\n'; }),
             json.end());
  EXPECT_EQ(json,
            R"({"profile":"dim","images":[{"name":"root","dataset":"","width":4,"height":3,)"
            R"("unknown":{"n":5,"sad":0.5,"mse":0.25,"grad":1,"conn":1.5},)"
            R"("all":{"n":12,"sad":1,"mse":0.5,"grad":2,"conn":3}},)"
            R"({"name":"x","dataset":"a","width":4,"height":3,)"
            R"("unknown":{"n":0,"sad":null,"mse":null,"grad":null,"conn":null},)"
            R"("all":{"n":12,"sad":4,"mse":0.5,"grad":2,"conn":3}}],)"
            R"("mean":{"unknown":{"images":1,"sad":0.5,"mse":0.25,"grad":1,"conn":1.5},)"
            R"("all":{"images":2,"sad":2.5,"mse":0.5,"grad":2,"conn":3}},)"
            R"("datasets":{"":{"unknown":{"images":1,"sad":0.5,"mse":0.25,"grad":1,"conn":1.5},)"
            R"("all":{"images":1,"sad":1,"mse":0.5,"grad":2,"conn":3}},)"
            R"("a":{"unknown":{"images":0,"sad":null,"mse":null,"grad":null,"conn":null},)"
            R"("all":{"images":1,"sad":4,"mse":0.5,"grad":2,"conn":3}}}})");
}

TEST(MattingReport, UnknownIsNullWithoutTrimaps) {
  MattingReport made{.profile = "p3m", .rows = {row(0, "", "a", 1, std::nullopt)}};
  compute_means(made);
  EXPECT_TRUE(has(matting_json(made), R"("mean": {
    "unknown": null,)"));
}

TEST(MattingReport, CsvQuotesAndGuardsNames) {
  auto made = report();
  made.rows = {row(0, "a,\"b\"", "=1+1", 1, std::nullopt), row(1, "x\ny", "\xff", 1, -1)};
  EXPECT_EQ(matting_csv(made),
            "dataset,name,width,height,unknown/n,unknown/sad,unknown/mse,unknown/grad,unknown/conn,"
            "all/n,all/sad,all/mse,all/grad,all/conn\n"
            "\"a,\"\"b\"\"\",'=1+1,4,3,,,,,,12,1,0.5,2,3\n"
            "\"x\ny\",\xef\xbf\xbd,4,3,0,,,,,12,1,0.5,2,3\n");
}

TEST(MattingReport, HtmlTrustsNoNameAndLoadsNothing) {
  auto made = report();
  // NOLINTNEXTLINE(misc-misleading-bidirectional): meant
  const std::string evil = "<script>alert(1)</script>\" onload='x' \xe2\x80\xae";
  made.prediction = evil;
  made.truth = evil;
  made.rows = {row(0, evil, evil, 1, 0.5)};
  made.problems = {{.text = evil}};
  made.thumbnails[0] = {"p", "g", "e"};
  compute_means(made);
  const std::string html = matting_html(made);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("onload='"), std::string::npos);
  EXPECT_EQ(html.find("http:"), std::string::npos);
  EXPECT_EQ(html.find("https:"), std::string::npos);
  EXPECT_TRUE(has(html, "default-src 'none'"));
  EXPECT_TRUE(has(html, "src=\"data:image/png;base64,cA==\""));
}

TEST(MattingReport, TheTableFitsEightyColumns) {
  auto made = report();
  made.rows.push_back(row(4, "a", std::string(200, 'n'), 123456.7, 99999.9));
  compute_means(made);
  const std::string table = matting_table(made);
  for (size_t at = 0; at < table.size();) {
    const size_t end = table.find('\n', at);
    EXPECT_LE(columns_of(table.substr(at, end - at)), 80U) << table.substr(at, end - at);
    at = end + 1;
  }
  EXPECT_TRUE(has(table, "all images"));
  EXPECT_TRUE(has(table, "(no folder)"));
}

TEST(Terminal, ShowsWhatCouldChangeIt) {
  // NOLINTNEXTLINE(misc-misleading-bidirectional): meant
  EXPECT_EQ(printable("a\x1b[31m\n\xc3\xa9\xff\xe2\x80\xae"),
            "a\\x1b[31m\\x0a\xc3\xa9\\xff\\xe2\\x80\\xae");
  EXPECT_EQ(columns_of("日本a\xcc\x81"), 5U);
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 10), "abcd…ghijk");
  EXPECT_LE(columns_of(shortened("日本日本日本日本日本", 10)), 10U);
}

TEST(MattingOutput, ReplacesFilesWholeAndWritesIntoOthers) {
  const test::TempFolder folder;
  write_output(folder / "new/a.json", "1");
  write_output(folder / "new/a.json", "2");
  EXPECT_EQ(read_file(folder / "new/a.json"), "2");
  std::filesystem::create_symlink("a.json", folder / "new" / "link");
  write_output(folder / "new/link", "3");
  EXPECT_EQ(read_file(folder / "new/a.json"), "3");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "new/link"));
  write_output("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THROW(write_output(folder / "new", "x"), Error);
}

TEST(MattingOutput, SaysWhyADeviceTookNothing) {
  errno = 0;
  const Error error = test::error_of([] { write_output("/dev/full", "x"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
}

TEST(WorstThumbnails, KeepsTheSameInAnyOrder) {
  std::vector<std::pair<double, int64_t>> images{{3, 0}, {1, 1}, {3, 2}, {2, 3}, {-1, 4}, {3, 5}};
  std::sort(images.begin(), images.end());
  do {
    WorstThumbnails worst{3};
    for (const auto& [bad, index] : images) {
      if (worst.wants(bad, index)) {
        worst.put(bad, index, {std::to_string(index), "", ""});
      }
    }
    const auto kept = worst.take();
    ASSERT_EQ(kept.size(), 3U);
    for (const int64_t index : {0, 2, 5}) {
      ASSERT_EQ(kept.at(index).prediction, std::to_string(index));
    }
  } while (std::next_permutation(images.begin(), images.end()));
  EXPECT_FALSE(WorstThumbnails{0}.wants(1, 0));
}

TEST(MemoryGate, NeverHandsOutMoreThanItHasAndLetsLargeOnesThrough) {
  MemoryGate gate{100};
  std::atomic<int64_t> held{0};
  std::atomic<int64_t> most{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int64_t bytes = (t == 0) ? 100 : 20 + (7 * i) % 30;
        const MemoryGate::Pass pass{gate, bytes};
        const int64_t now = held += bytes;
        int64_t seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        held -= bytes;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_LE(most.load(), 100);
}

TEST(MemoryPlan, OfAllRanksAndThreadsIsBelowTheWhole) {
  for (const int ranks : {1, 2, 4, 16}) {
    const auto plan = MemoryPlan::of(ranks, 3);
    EXPECT_LE(ranks * (plan.of_rank + 3 * plan.kept_by_thread), int64_t{1472} << 20U);
    EXPECT_GE(plan.of_rank, int64_t{50} << 20U);
  }
  EXPECT_EQ(MemoryPlan::of(1, 64).of_rank, MemoryPlan::most_of_an_image);
}

TEST(MattingRanks, GiveRankZeroAllResultsInPathOrder) {
  const WorkOptions options{.has_trimaps = true, .most_thumbnails = 2};
  run_threads(3, [&](Group& group) {
    const auto rank = group.rank();
    const MatchedFiles mine{.samples = {{.stem = "a/" + std::to_string(rank), .trimap = "t"}},
                            .problems = {{.kind = Problem::Kind::warning, .text = "w"}}};
    const auto files = share_files(group, mine);
    EXPECT_EQ(files.samples.at(0).stem, "a/0");
    EXPECT_EQ(files.samples.at(0).trimap, "t");
    EXPECT_EQ(files.problems.at(0).kind, Problem::Kind::warning);

    WorkResult result;
    for (int64_t index : {int64_t{3} + rank, int64_t{rank}}) {
      result.rows.push_back(row(index, "", "", 1, static_cast<double>(index % 4)).row);
      result.thumbnails[index] = {std::to_string(index), "g", "e"};
    }
    result.problems = {{.place = std::to_string(9 - rank), .text = "x"}};
    result.too_large = {rank};
    const auto all = gather_results(group, result, options);
    EXPECT_EQ(all.has_value(), rank == 0);
    if (all) {
      ASSERT_EQ(all->rows.size(), 6U);
      for (int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(all->rows[static_cast<size_t>(i)].index, i);
        EXPECT_EQ(all->rows[static_cast<size_t>(i)].unknown->values->sad,
                  static_cast<double>(i % 4));
      }
      EXPECT_EQ(all->problems.at(0).place, "7");
      EXPECT_EQ(all->too_large, (std::vector<int64_t>{0, 1, 2}));
      ASSERT_EQ(all->thumbnails.size(), 2U);
      EXPECT_EQ(all->thumbnails.at(3).prediction, "3");
      EXPECT_EQ(all->thumbnails.at(2).prediction, "2");
    }
    group.finish();
  });
}

}  // namespace
}  // namespace muster::app
