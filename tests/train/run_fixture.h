#pragma once

#include "support/temp_folder.h"

#include <muster/base/files.h>
#include <muster/train/trainer.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::test {

/// A sample is its own index and what the test wants of it.
struct Item {
  int64_t number = 0;
  at::Tensor image{};
};

inline std::vector<Item> items(int64_t count) {
  std::vector<Item> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back({.number = i});
  }
  return out;
}

/// A folder of the test's own, removed at its end.
class RunTest : public ::testing::Test {
 protected:
  [[nodiscard]] TrainerOptions options(const std::string& name) const {
    return {.run_dir = (folder_ / name).string(), .logger = false, .enable_progress_bar = false};
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return read_file(folder_ / name);
  }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

  /// Runs `body` on `ranks` threads, each with a Trainer on the run folder W<ranks>; the folder's
  /// results.json.
  std::string results(int ranks, const std::function<void(Trainer&)>& body) const {
    const std::string name = "W" + std::to_string(ranks);
    run_threads(ranks, [&](Group& group) {
      Trainer trainer{options(name), group};
      body(trainer);
      group.finish();
    });
    return file(name + "/results.json");
  }

 private:
  TempFolder folder_;
};

}  // namespace muster::test
