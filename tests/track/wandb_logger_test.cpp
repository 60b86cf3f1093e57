#include "track/support.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>
#include <muster/track/wandb_logger.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

namespace muster {
namespace {

using test::make_image;
using test::TempDir;
using test::WandbEntry;

// Fields of W&B's Record.
enum Kind : uint32_t {
  history = 2,
  summary = 3,
  config = 5,
  files = 6,
  metric = 12,
  run = 17,
  exit_record = 18,
  header = 21
};

std::unique_ptr<Logger> logger_in(const TempDir& dir) {
  auto now = std::make_shared<double>(1764500000.25);
  return make_wandb_logger({.dir = dir.path(), .id = "abcd1234", .clock = [now] {
                              return std::exchange(*now, *now + 0.5);
                            }});
}

std::vector<WandbEntry> entries_of(const TempDir& dir, uint32_t field) {
  auto entries = test::read_wandb(test::only_wandb_file(dir.path()));
  std::erase_if(entries, [&](const WandbEntry& e) { return e.field != field; });
  return entries;
}

std::filesystem::path files_of(const TempDir& dir) {
  return test::only_wandb_file(dir.path()).parent_path() / "files";
}

TEST(WandbLogger, WritesRecordsInTheOrderThatSyncWants) {
  const TempDir dir;
  auto logger = logger_in(dir);
  logger->log_hyperparameters(R"({"seed": 7, "model": {"lr": 1e-05}})");
  logger->log_metrics({.step = 10, .epoch = 1, .values = {{"loss", 0.5}}});
  logger->finish(0);

  bool is_whole = false;
  const auto entries = test::read_wandb(test::only_wandb_file(dir.path()), &is_whole);
  EXPECT_TRUE(is_whole);
  std::vector<uint32_t> kinds;
  for (size_t i = 0; i < entries.size(); ++i) {
    kinds.push_back(entries[i].field);
    EXPECT_EQ(entries[i].number, static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(kinds, (std::vector<uint32_t>{header, run, metric, metric, config, history, summary,
                                          exit_record}));
  EXPECT_EQ(entries[4].items,
            (std::map<std::string, std::string>{{"seed", "7"}, {"model", R"({"lr": 1e-05})"}}));
}

TEST(WandbLogger, NamesTheRunAsTheRealToolDoes) {
  const TempDir dir;
  auto logger = logger_in(dir);
  const auto file = test::only_wandb_file(dir.path());
  EXPECT_EQ(file.filename(), "run-abcd1234.wandb");
  EXPECT_EQ(file.parent_path().filename().string().substr(0, 12), "offline-run-");
  EXPECT_EQ(file.parent_path().filename().string().substr(27), "-abcd1234");
  EXPECT_EQ(std::filesystem::read_symlink(dir.path() / "wandb" / "latest-run"),
            file.parent_path().filename());
}

TEST(WandbLogger, GivesEachRowRisingStepsAndASummary) {
  const TempDir dir;
  auto logger = logger_in(dir);
  logger->log_metrics({.step = 100, .epoch = 3, .values = {{"loss", 0.1}, {"acc", 1}}});
  logger->log_metrics({.step = 90, .epoch = 3, .values = {{"loss", 1e-7}}});
  const auto rows = entries_of(dir, history);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].items, (std::map<std::string, std::string>{{"_step", "0"},
                                                               {"_runtime", "0.5"},
                                                               {"_timestamp", "1764500000.75"},
                                                               {"trainer/global_step", "100"},
                                                               {"epoch", "3"},
                                                               {"loss", "0.1"},
                                                               {"acc", "1"}}));
  EXPECT_EQ(rows[1].items.at("_step"), "1");
  EXPECT_EQ(rows[1].items.at("trainer/global_step"), "90");
  EXPECT_EQ(rows[1].items.at("loss"), "1e-07");
  const auto summaries = entries_of(dir, summary);
  ASSERT_EQ(summaries.size(), 2);
  EXPECT_EQ(summaries[0].items, rows[0].items);
  EXPECT_EQ(summaries[1].items, rows[1].items);
}

TEST(WandbLogger, WritesWhatIsNotFiniteBare) {
  const TempDir dir;
  auto logger = logger_in(dir);
  const double infinity = std::numeric_limits<double>::infinity();
  logger->log_metrics(
      {.values = {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}, {"epoch", 2.5}}});
  const auto items = entries_of(dir, history).at(0).items;
  EXPECT_EQ(items.at("a"), "NaN");
  EXPECT_EQ(items.at("b"), "Infinity");
  EXPECT_EQ(items.at("c"), "-Infinity");
  EXPECT_EQ(items.at("epoch"), "2.5");
}

TEST(WandbLogger, ShowsTheImagesOfOneCallAsOneList) {
  const TempDir dir;
  const TempDir spool;
  auto logger = logger_in(dir);
  logger->log_metrics({.values = {{"x", 1}}});
  const std::vector<ImageRecord> images{
      make_image(spool.path(), "eval", 7, 0, "gt \"0\"", 5, 4, 1),
      make_image(spool.path(), "eval", 7, 0, "", 8, 2, 2),
      make_image(spool.path(), "eval", 7, 1, "gt 1", 5, 4, 1),
  };
  logger->log_images(images);

  const auto rows = entries_of(dir, history);
  ASSERT_EQ(rows.size(), 3);
  const auto name = [&](int step, size_t image) {
    return "media/images/eval_" + std::to_string(step) + "_" + images[image].sha256.substr(0, 20) +
           ".png";
  };
  EXPECT_EQ(
      rows[1].items.at("eval"),
      R"({"_type": "images/separated", "width": 5, "height": 4, "format": "png", "count": 2, )"
      R"("filenames": [")" +
          name(1, 0) + R"(", ")" + name(1, 1) + R"("], "captions": ["gt \"0\"", ""]})");
  EXPECT_EQ(rows[1].items.at("trainer/global_step"), "7");
  EXPECT_NE(rows[2].items.at("eval").find(name(2, 2)), std::string::npos);
  EXPECT_EQ(read_file(files_of(dir) / name(1, 1)), test::gray_png(8, 2, 2));

  // Every file is named before the row that shows it.
  const auto entries = test::read_wandb(test::only_wandb_file(dir.path()));
  std::vector<std::string> listed;
  for (const auto& entry : entries) {
    if (entry.field == files) {
      listed.push_back(entry.items.begin()->first);
    } else if (entry.field == history && entry.items.at("_step") == "1") {
      EXPECT_EQ(listed, (std::vector<std::string>{name(1, 0), name(1, 1)}));
    }
  }
  EXPECT_EQ(listed.size(), 3);
}

TEST(WandbLogger, KeepsImagesWhenTheSpoolIsRemoved) {
  const TempDir dir;
  auto logger = logger_in(dir);
  {
    const TempDir spool;
    logger->log_images(std::vector{make_image(spool.path(), "k", 0, 0, "c")});
  }
  const auto kept = test::files_below(files_of(dir));
  ASSERT_EQ(kept.size(), 1);
  EXPECT_EQ(read_file(kept[0]), test::gray_png(4, 3, 0));
}

TEST(WandbLogger, CutsAListAtTheMostThatIsShown) {
  const TempDir dir;
  const TempDir spool;
  auto logger = logger_in(dir);
  logger->log_images(std::vector(250, make_image(spool.path(), "k", 0, 0, "c")));
  const auto rows = entries_of(dir, history);
  ASSERT_EQ(rows.size(), 3);
  EXPECT_NE(rows[0].items.at("k").find(R"("count": 108,)"), std::string::npos);
  EXPECT_NE(rows[2].items.at("k").find(R"("count": 34,)"), std::string::npos);
}

TEST(WandbLogger, NeverWritesOutsideItsFolder) {
  const TempDir dir;
  const TempDir spool;
  auto logger = logger_in(dir);
  const auto path_of = [&](const std::string& key) {
    logger->log_images(std::vector{make_image(spool.path(), key, 0, 0, "")});
    return entries_of(dir, files).back().items.begin()->first;
  };
  EXPECT_TRUE(path_of("../../../up").starts_with("media/images/__/__/__/up_0_"));
  EXPECT_TRUE(path_of("//etc/./x").starts_with("media/images/etc/_/x_1_"));
  EXPECT_TRUE(path_of("..").starts_with("media/images/___2_"));
  EXPECT_TRUE(path_of("a [b] *?\".png").starts_with("media/images/a [b] *?\".png_3_"));
  EXPECT_TRUE(path_of("bad \xff").starts_with("media/images/bad \xef\xbf\xbd_4_"));
  for (const auto& row : entries_of(dir, files)) {
    EXPECT_TRUE(std::filesystem::exists(files_of(dir) / row.items.begin()->first));
  }
}

TEST(WandbLogger, RefusesNamesThatAreWandbsOwn) {
  const TempDir dir;
  auto logger = logger_in(dir);
  EXPECT_THROW(logger->log_metrics({.values = {{"_step", 1}}}), Error);
  EXPECT_THROW(logger->log_metrics({.values = {{"trainer/global_step", 1}}}), Error);
  EXPECT_THROW(logger->log_metrics({.values = {{"", 1}}}), Error);
  EXPECT_THROW(logger->log_text(std::string_view{"a\0b", 3}, 0, "text"), Error);
  EXPECT_TRUE(entries_of(dir, history).empty());
}

TEST(WandbLogger, WritesWhatTheRealToolWouldAddOnSync) {
  const TempDir dir;
  auto logger = logger_in(dir);
  logger->log_hyperparameters(
      "{\"lr\": 1e-05, \"big\": [1e+300, -2, \"1e5\"],\n \"a: b\": {\"c\" : null}}");
  logger->log_metrics({.step = 5, .epoch = 2, .values = {{"loss", 0.5}}});
  logger->log_metrics({.step = 6, .epoch = 2, .values = {{"loss", 0.25}}});
  logger->log_text("note", 6, "line\n\"quoted\"");
  logger->finish(3);
  EXPECT_EQ(read_file(files_of(dir) / "config.yaml"),
            "\"lr\":\n    value: 1.0e-05\n\"big\":\n    value: [1.0e+300, -2, \"1e5\"]\n"
            "\"a: b\":\n    value: {\"c\": null}\n");
  EXPECT_EQ(
      read_file(files_of(dir) / "wandb-summary.json"),
      R"({"_step": 2, "_runtime": 1.5, "_timestamp": 1764500001.75, "trainer/global_step": 6, )"
      R"("epoch": 2, "loss": 0.25, "note": "line\u000a\"quoted\""})"
      "\n");
  EXPECT_EQ(test::to_hex(entries_of(dir, exit_record).at(0).body), "08031002");
}

TEST(WandbLogger, ARunThatGoesOnNamesTheOneBefore) {
  const TempDir dir;
  auto logger = logger_in(dir);
  EXPECT_EQ(logger->position(), "abcd1234");
  logger->log_hyperparameters(R"({"seed": 7})");
  logger->go_on("", 5);
  logger->go_on("efgh5678", 40);
  logger->finish(0);
  const auto entries = entries_of(dir, config);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].items, (std::map<std::string, std::string>{
                                  {"resumed_from", R"({"run": "efgh5678", "global_step": 40})"}}));
  EXPECT_NE(read_file(files_of(dir) / "config.yaml").find("efgh5678"), std::string::npos);
}

TEST(WandbLogger, TakesNothingAfterItsEnd) {
  const TempDir dir;
  auto logger = logger_in(dir);
  logger->finish(0);
  EXPECT_THROW(logger->log_metrics({.values = {{"a", 1}}}), Error);
  EXPECT_THROW(logger->finish(0), Error);
  EXPECT_EQ(test::read_wandb(test::only_wandb_file(dir.path())).back().field, exit_record);
}

TEST(WandbLogger, WritesManyRows) {
  const TempDir dir;
  auto logger = logger_in(dir);
  for (int i = 0; i < 2000; ++i) {
    logger->log_metrics({.step = i, .values = {{"loss", 1.0 / (i + 1)}}});
  }
  bool is_whole = false;
  EXPECT_EQ(test::read_wandb(test::only_wandb_file(dir.path()), &is_whole).size(), 4 + 4000);
  EXPECT_TRUE(is_whole);
}

TEST(WandbLogger, MakesAnIdOfItsOwn) {
  const TempDir dir;
  const auto one = make_wandb_logger({.dir = dir.path()});
  const auto two = make_wandb_logger({.dir = dir.path()});
  std::vector<std::string> names;
  for (const auto& path : test::files_below(dir.path())) {
    names.push_back(path.filename().string());
  }
  ASSERT_EQ(names.size(), 2);
  EXPECT_NE(names[0], names[1]);
  EXPECT_EQ(names[0].size(), std::string{"run-abcd1234.wandb"}.size());
  EXPECT_THROW(make_wandb_logger({.dir = dir.path(), .id = "../x"}), Error);
}

TEST(WandbLogger, KeepsEveryRowThatWasLoggedBeforeAKill) {
  const TempDir dir;
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto logger = make_wandb_logger({.dir = dir.path()});
    for (int64_t i = 0;; ++i) {
      logger->log_metrics({.step = i, .values = {{"loss", 0.5}}});
      if (::write(pipe_ends[1], &i, sizeof(i)) != sizeof(i)) {
        ::_exit(1);
      }
    }
  }
  ::close(pipe_ends[1]);
  int64_t logged = 0;
  while (logged < 200 && ::read(pipe_ends[0], &logged, sizeof(logged)) == sizeof(logged)) {
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (::read(pipe_ends[0], &logged, sizeof(logged)) == sizeof(logged)) {
  }
  ::close(pipe_ends[0]);

  const auto rows = entries_of(dir, history);
  ASSERT_GT(static_cast<int64_t>(rows.size()), logged);
  EXPECT_EQ(rows[static_cast<size_t>(logged)].items.at("trainer/global_step"),
            std::to_string(logged));
}

}  // namespace
}  // namespace muster
