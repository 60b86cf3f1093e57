#include <gtest/gtest.h>
#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/proc/rank_failure.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "support/temp_folder.h"
#include "support/texts.h"

namespace {

using muster::test::has;
using muster::test::matches;
using muster::test::TempFolder;

muster::RankFailure failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return muster::describe_failure(std::current_exception());
  }
  return {};
}

TEST(RankFailure, OfAnErrorHasItsCodeAndPlace) {
  const auto failure = failure_of([] { muster::fail(muster::ErrorKind::mismatch, "{} ranks", 3); });
  EXPECT_EQ(failure.code, 70);
  EXPECT_EQ(failure.message, "3 ranks");
  EXPECT_TRUE(matches(failure.source, "tests/proc/rank_failure_test.cpp:[0-9]+"));
}

TEST(RankFailure, OfAnyOtherExceptionIsTheUsers) {
  auto failure = failure_of([] { throw std::out_of_range{"no such sample"}; });
  EXPECT_EQ(failure.code, 1);
  EXPECT_EQ(failure.message, "no such sample");
  EXPECT_EQ(failure.source, "");
  failure = failure_of([] { throw 5; });
  EXPECT_EQ(failure.code, 1);
  EXPECT_TRUE(has(failure.message, "no std::exception"));
}

TEST(RankFailure, OfAProcessOnItsOwnGoesToStderrAndTheErrorFile) {
  const TempFolder folder;
  unsetenv("MUSTER_ERROR_FD");
  EXPECT_EXIT(muster::fail_rank({.code = 65,
                                 .message = "cannot read it",
                                 .phase = "predict",
                                 .source = "x.cpp:3",
                                 .run_dir = folder.path()}),
              testing::ExitedWithCode(65), "muster: error: cannot read it\n  during predict\n");
  EXPECT_TRUE(has(muster::read_file(folder / "errors/rank-0.json"), "cannot read it"));
}

TEST(RankFailure, ShowsATerminalNoControlCharacters) {
  const std::string title = "\x1b]0;title\x07";
  EXPECT_EXIT(
      muster::fail_rank(
          {.code = 65, .message = "no " + title + "\xc2\x9b" + "2J\nfile", .phase = "fit" + title}),
      testing::ExitedWithCode(65),
      "^muster: error: no \\]0;title2J\n  file\n  during fit\\]0;title\n$");
}

TEST(RankFailure, OfALostPeerIsOneLine) {
  EXPECT_EXIT(muster::fail_rank({.code = 75, .message = "peer lost: rank 1\nmore", .phase = "x"}),
              testing::ExitedWithCode(75), "^muster: peer lost: rank 1\n$");
}

TEST(RankFailure, FilesOfAnEarlierCommandCanBeCleared) {
  const TempFolder folder;
  muster::write_file_atomically(folder / "errors/rank-0.json", "{}");
  muster::write_file_atomically(folder / "errors/rank-11.json", "{}");
  muster::clear_error_files(folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder / "errors"));
  muster::clear_error_files(folder.path());
  muster::write_file_atomically(folder / "errors/rank-0.json", "{}");
  muster::write_file_atomically(folder / "errors/notes.txt", "mine");
  muster::clear_error_files(folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder / "errors/rank-0.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "errors/notes.txt"));
}

TEST(RankFailure, ARankThatRunsClearsItsOwnFileAndNoOtherRanks) {
  const TempFolder folder;
  for (const auto* rank : {"0", "1", "2", "11"}) {
    muster::write_file_atomically(folder / "errors" / (std::string{"rank-"} + rank + ".json"),
                                  "{}");
  }
  muster::clear_error_files(folder.path(), 0, 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "errors/rank-0.json"));
  EXPECT_TRUE(std::filesystem::exists(folder / "errors/rank-1.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "errors/rank-11.json"));
  muster::clear_error_files(folder.path(), 1, 3);
  muster::clear_error_files(folder.path(), 2, 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "errors"));
}

}  // namespace
