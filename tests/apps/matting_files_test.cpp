// Which files belong together.

#include "apps/muster/matting/files.h"

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/files.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

class MattingFiles : public ::testing::Test {
 protected:
  void make(const std::vector<std::string>& names) const {
    for (const auto& name : names) {
      write_file_atomically(folder_ / name, "x", Durability::process);
    }
  }
  [[nodiscard]] MatchedFiles match(bool trimaps = false, bool skip = false) const {
    for (const char* part : {"p", "g", "t"}) {
      fs::create_directories(folder_ / part);
    }
    return match_files({.prediction = folder_ / "p",
                        .truth = folder_ / "g",
                        .trimap = trimaps ? std::optional{folder_ / "t"} : std::nullopt,
                        .skip_missing = skip});
  }
  static std::vector<std::string> stems(const MatchedFiles& files) {
    std::vector<std::string> result;
    result.reserve(files.samples.size());
    for (const auto& sample : files.samples) {
      result.push_back(sample.stem);
    }
    return result;
  }
  /// "error a/b: ..." of each problem, as far as `parts` are in it.
  static void expect_problem(const Problem& problem, Problem::Kind kind,
                             const std::vector<std::string>& parts) {
    EXPECT_EQ(problem.kind, kind) << problem.text;
    for (const auto& part : parts) {
      EXPECT_NE(problem.text.find(part), std::string::npos) << part << " in " << problem.text;
    }
  }

  test::TempFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(MattingFiles, AreMatchedByRelativePathWithoutTheLastExtension) {
  make({"p/a/v1.2.final.png", "p/a/v1.2.other.PNG", "p/x.JPeG", "p/a/deep/er/y.jpg",
        "g/a/v1.2.final.jpg", "g/a/v1.2.other.png", "g/x.png", "g/a/deep/er/y.png"});
  const auto files = match();
  EXPECT_EQ(stems(files), (Names{"a/deep/er/y", "a/v1.2.final", "a/v1.2.other", "x"}));
  EXPECT_TRUE(files.problems.empty());
  EXPECT_EQ(files.samples[0].dataset(), "a");
  EXPECT_EQ(files.samples[0].name(), "deep/er/y");
  EXPECT_EQ(files.samples[3].dataset(), "");
  EXPECT_EQ(files.samples[3].name(), "x");
  EXPECT_EQ(files.samples[3].prediction, folder_ / "p/x.JPeG");
}

TEST_F(MattingFiles, ComeInTheOrderOfTheBytesOfTheirPath) {
  Names names;
  for (const char* stem : {"a/x", "a-b/x", "a", "B", "\xc3\xa9", "z", "a/X", "10", "9"}) {
    names.push_back(std::string{"p/"} + stem + ".png");
    names.push_back(std::string{"g/"} + stem + ".png");
  }
  make(names);
  EXPECT_EQ(stems(match()), (Names{"10", "9", "B", "a", "a-b/x", "a/X", "a/x", "z", "\xc3\xa9"}));
}

TEST_F(MattingFiles, ThatAreHiddenOrNoPicturesByExtensionArePassedOver) {
  make({"p/a.png", "g/a.png", "g/.b.png", "g/.hidden/c.png", "g/notes.txt", "g/png", "g/d.png.bak",
        "p/.DS_Store"});
  const auto files = match();
  EXPECT_EQ(stems(files), (Names{"a"}));
  EXPECT_TRUE(files.problems.empty());
}

TEST_F(MattingFiles, MissingPredictionsAreErrorsOrWarningsAsAsked) {
  make({"p/a.png", "g/a.png", "g/s/b.png", "p/stray.png"});
  for (const bool skip : {false, true}) {
    const auto files = match(false, skip);
    EXPECT_EQ(stems(files), (Names{"a"}));
    ASSERT_EQ(files.problems.size(), 2U);
    expect_problem(files.problems[0], skip ? Problem::Kind::warning : Problem::Kind::error,
                   {folder_ / "g/s/b.png", folder_ / "p/s/b"});
    expect_problem(files.problems[1], Problem::Kind::warning, {folder_ / "p/stray.png"});
  }
}

TEST_F(MattingFiles, MissingTrimapsAreWarningsAndTheImageStays) {
  make({"p/a.png", "g/a.png", "p/b.png", "g/b.png", "t/b.jpg", "t/more.png"});
  const auto files = match(true);
  EXPECT_EQ(stems(files), (Names{"a", "b"}));
  EXPECT_FALSE(files.samples[0].trimap.has_value());
  EXPECT_EQ(files.samples[1].trimap, folder_ / "t/b.jpg");
  ASSERT_EQ(files.problems.size(), 1U);
  expect_problem(files.problems[0], Problem::Kind::warning, {folder_ / "g/a.png"});
}

TEST_F(MattingFiles, TwoOfOneStemAreAnErrorThatNamesBoth) {
  make({"p/a.png", "p/b.png", "p/b.PNG", "p/c.png", "p/d.png", "p/d.jpeg", "g/a.png", "g/a.jpg",
        "g/b.png", "g/c.png", "t/c.png", "t/c.jpg"});
  const auto files = match(true);
  EXPECT_TRUE(files.samples.empty());
  ASSERT_EQ(files.problems.size(), 4U);
  expect_problem(files.problems[0], Problem::Kind::error,
                 {folder_ / "g/a.png", folder_ / "g/a.jpg"});
  expect_problem(files.problems[1], Problem::Kind::error,
                 {folder_ / "p/b.png", folder_ / "p/b.PNG"});
  expect_problem(files.problems[2], Problem::Kind::error,
                 {folder_ / "t/c.png", folder_ / "t/c.jpg"});
  expect_problem(files.problems[3], Problem::Kind::error,
                 {folder_ / "p/d.png", folder_ / "p/d.jpeg"});
}

TEST_F(MattingFiles, AreFoundThroughLinksButNotInCircles) {
  make({"p/a.png", "g/a.png", "elsewhere/b.png", "p/s/b.png"});
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "g" / "s");
  fs::create_directory_symlink(folder_ / "g", folder_ / "g" / "again");
  fs::create_directory_symlink("..", folder_ / "elsewhere" / "up");
  fs::create_symlink("nowhere", folder_ / "g" / "broken.png");
  fs::create_symlink("self.png", folder_ / "g" / "self.png");
  const auto files = match();
  const auto found = stems(files);
  EXPECT_TRUE(std::find(found.begin(), found.end(), "a") != found.end());
  EXPECT_TRUE(std::find(found.begin(), found.end(), "s/b") != found.end());
  int named = 0;
  for (const auto& problem : files.problems) {
    named += problem.text.starts_with((folder_ / "g/broken.png").string()) ||
                     problem.text.starts_with((folder_ / "g/self.png").string())
                 ? 1
                 : 0;
  }
  EXPECT_EQ(named, 2);
}

TEST_F(MattingFiles, InAFolderWithoutPicturesAreAnErrorThatNamesIt) {
  const auto files = match();
  ASSERT_EQ(files.problems.size(), 1U);
  expect_problem(files.problems[0], Problem::Kind::error, {folder_ / "g"});
}

TEST_F(MattingFiles, MayBeOnePictureEach) {
  make({"guess.v2.png", "truth.v1.png"});
  const auto files =
      match_files({.prediction = folder_ / "guess.v2.png", .truth = folder_ / "truth.v1.png"});
  ASSERT_EQ(files.samples.size(), 1U);
  EXPECT_EQ(files.samples[0].stem, "truth.v1");
}

TEST_F(MattingFiles, AreNotMixedWithFolders) {
  make({"a.png", "g/a.png"});
  const auto kind_of = [&](const fs::path& prediction, const fs::path& truth) {
    try {
      match_files({.prediction = prediction, .truth = truth});
    } catch (const Error& error) {
      return error.exit_code();
    }
    return 0;
  };
  EXPECT_EQ(kind_of(folder_ / "a.png", folder_ / "g"), 2);
  EXPECT_EQ(kind_of(folder_ / "g", folder_ / "a.png"), 2);
  EXPECT_EQ(kind_of(folder_ / "none", folder_ / "g"), 65);
}

TEST_F(MattingFiles, ThatCannotBeReachedAreNotSaidToBeMissing) {
  fs::create_symlink("loop", folder_ / "loop");
  const Error error = test::error_of(
      [&] { match_files({.prediction = folder_ / "loop", .truth = folder_ / "loop"}); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.what(),
            (folder_ / "loop").string() + ": cannot be read: Too many levels of symbolic links");
}

}  // namespace
}  // namespace muster::app
