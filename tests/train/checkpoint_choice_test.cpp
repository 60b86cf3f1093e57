#include "src/train/checkpoint_choice_internal.h"
#include "src/train/training_id_internal.h"

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

const std::string mine(32, 'a');
const std::string other(32, 'b');
const std::string fresh(32, 'c');

class CheckpointChoice : public testing::Test {
 protected:
  void SetUp() override {
    for (const int64_t step : {3, 12, 7}) {
      write_checkpoint(folder(step), {.global_step = step, .model = {{"w", at::full({4}, step)}}});
    }
    point_to_checkpoint(checkpoints() / "last.ckpt", folder(12));
    point_to_checkpoint(checkpoints() / "best.ckpt", folder(7));
  }

  fs::path checkpoints() const { return temp_.path() / "checkpoints"; }
  fs::path folder(int64_t step) const {
    return checkpoints() / ("step=" + std::to_string(step) + ".ckpt");
  }
  /// What all of two ranks get, as a path below the run's folder.
  std::string choice(const std::string& given) const {
    std::mutex mutex;
    std::vector<std::string> all;
    run_threads(2, [&](Group& group) {
      group.begin_section("start", 0);
      const std::string mine = choose_checkpoint(group, temp_.path().string(), given);
      const std::lock_guard lock{mutex};
      all.push_back(mine);
    });
    EXPECT_EQ(all[0], all[1]);
    return all[0].empty() ? "" : fs::path{all[0]}.lexically_relative(checkpoints()).string();
  }
  /// Writes one that a training has signed.
  void sign(int64_t step, const std::string& training) const {
    write_checkpoint(
        folder(step),
        {.global_step = step, .training = training, .model = {{"w", at::full({4}, step)}}});
  }
  /// What is said of a choice of `last`.
  std::string said_of_last(const std::string& expected) const {
    testing::internal::CaptureStderr();
    EXPECT_EQ(choice("last"), expected);
    return testing::internal::GetCapturedStderr();
  }
  /// Flips one bit of the weights.
  static void damage(const fs::path& folder) {
    const fs::path file = folder / "model.safetensors";
    std::string bytes = read_file(file, 1'000'000);
    bytes.back() ^= 1;
    std::ofstream{file, std::ios::binary} << bytes;
  }

  TempFolder temp_;
};

TEST_F(CheckpointChoice, FindsLastBestNamesAndPaths) {
  EXPECT_EQ(choice(""), "");
  EXPECT_EQ(choice("last"), "last.ckpt");
  EXPECT_EQ(choice("best"), "best.ckpt");
  EXPECT_EQ(choice("step=3"), "step=3.ckpt");
  EXPECT_EQ(choice("step=3.ckpt"), "step=3.ckpt");
  EXPECT_EQ(choice(folder(7).string()), "step=7.ckpt");
  for (const auto* missing : {"step=4", "/nowhere/x.safetensors"}) {
    const Error error = error_of([&] { choice(missing); });
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string{error.what()}.find(missing), std::string::npos);
  }
}

TEST_F(CheckpointChoice, OfADamagedLastIsTheNewestWholeOneAndSaysSo) {
  damage(folder(12));
  testing::internal::CaptureStderr();
  EXPECT_EQ(choice("last"), "step=7.ckpt");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("model.safetensors is damaged"), std::string::npos) << said;
  EXPECT_NE(said.find("going on from"), std::string::npos) << said;
  damage(folder(7));
  fs::remove(folder(3) / "manifest.json");
  EXPECT_EQ(error_of([&] { choice("last"); }).kind(), ErrorKind::data);
}

TEST_F(CheckpointChoice, OfADamagedLastIsOneOfTheSameTraining) {
  sign(3, mine);
  sign(7, other);
  sign(12, mine);
  damage(folder(12));
  EXPECT_FALSE(contains(said_of_last("step=3.ckpt"), "another training"));
  damage(folder(3));
  const Error error = error_of([&] { choice("last"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(contains(error.what(), "no whole checkpoint of the same training")) << error.what();
}

TEST_F(CheckpointChoice, OfALastWithoutAManifestIsOneOfTheTrainingThatTheRunFolderNotes) {
  sign(3, mine);
  sign(7, other);
  fs::remove(folder(12) / "manifest.json");
  EXPECT_TRUE(contains(said_of_last("step=7.ckpt"), "which may be another training's"));
  remember_training(temp_.path(), mine);
  EXPECT_FALSE(contains(said_of_last("step=3.ckpt"), "another training"));
  remember_training(temp_.path(), other);
  EXPECT_FALSE(contains(said_of_last("step=7.ckpt"), "another training"));
  fs::remove_all(folder(12));
  EXPECT_FALSE(contains(said_of_last("step=7.ckpt"), "another training"));
  remember_training(temp_.path(), "");
  EXPECT_TRUE(contains(said_of_last("step=7.ckpt"), "which may be another training's"));
}

TEST_F(CheckpointChoice, OfADamagedLastWithoutAnIdIsNoneThatHasOne) {
  sign(7, other);
  damage(folder(12));
  EXPECT_TRUE(contains(said_of_last("step=3.ckpt"), "which may be another training's"));
}

TEST_F(CheckpointChoice, OfAStartKnowsTheTrainingAndWhichCheckpointsAreItsOwn) {
  sign(3, mine);
  sign(7, other);
  sign(12, mine);
  const auto start = [&](const std::string& given, const std::string& run_dir) {
    std::mutex mutex;
    std::vector<FitStart> all;
    run_threads(2, [&](Group& group) {
      group.begin_section("start", 0);
      FitStart found = choose_start(group, run_dir, given, fresh);
      const std::lock_guard lock{mutex};
      all.push_back(std::move(found));
    });
    EXPECT_EQ(all[0].ckpt_path, all[1].ckpt_path);
    EXPECT_EQ(all[0].training, all[1].training);
    EXPECT_EQ(all[0].checkpoints, all[1].checkpoints);
    return all[0];
  };
  using Names = std::set<std::string, std::less<>>;
  const std::string here = temp_.path().string();
  EXPECT_EQ(start("last", here).training, mine);
  EXPECT_EQ(start("last", here).checkpoints, (Names{"step=3", "step=12"}));
  EXPECT_EQ(start("step=7", here).training, other);
  EXPECT_EQ(start("step=7", here).checkpoints, (Names{"step=7"}));
  EXPECT_EQ(start(folder(7).string(), here + "/elsewhere").checkpoints, Names{});
  const FitStart weights = start((folder(7) / "model.safetensors").string(), here);
  EXPECT_EQ(weights.training, fresh);
  EXPECT_EQ(weights.checkpoints, Names{});
  EXPECT_EQ(start("", here).training, fresh);
}

TEST_F(CheckpointChoice, OfALinkToNothingIsTheNewestWholeOne) {
  fs::remove_all(folder(12));
  testing::internal::CaptureStderr();
  EXPECT_EQ(choice("last"), "step=7.ckpt");
  testing::internal::GetCapturedStderr();
  fs::remove_all(checkpoints());
  EXPECT_EQ(error_of([&] { choice("last"); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace muster::test
