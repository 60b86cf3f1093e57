#include "src/train/checkpoint_choice_internal.h"

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
