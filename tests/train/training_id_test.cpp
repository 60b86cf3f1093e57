// What tells one training from another: in the same run folder, in a folder that was moved, when it
// is gone on with.

#include "plain_fit.h"

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/train/model_checkpoint.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <set>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

/// Notes the ids that a training has on its ranks.
class NotesIds final : public Callback {
 public:
  NotesIds(std::mutex& mutex, std::set<std::string>& seen) : mutex_{mutex}, seen_{seen} {}
  void on_batch_end(const Progress& progress) override {
    if (progress.stage != Stage::fit) return;
    const std::lock_guard lock{mutex_};
    seen_.insert(progress.training->id());
  }

 private:
  std::mutex& mutex_;
  std::set<std::string>& seen_;
};

class TrainingId : public ::testing::Test {
 protected:
  PlainFit checkpointed(const std::string& run, int64_t epochs, int ranks = 1) const {
    return {.options = {.max_epochs = epochs,
                        .run_dir = (folder() / run).string(),
                        .logger = false,
                        .enable_progress_bar = false,
                        .enable_model_summary = false},
            .ranks = ranks};
  }
  /// Of two checkpoints that stay.
  PlainFit of_two(const std::string& run, int64_t epochs, int ranks = 1) const {
    PlainFit p = checkpointed(run, epochs, ranks);
    p.callback = [] {
      return std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.save_top_k = 2});
    };
    return p;
  }
  static PlainFit goes_on(PlainFit plan, const std::string& ckpt_path = "last") {
    plan.ckpt_path = ckpt_path;
    return plan;
  }
  static void run(const PlainFit& plan) { run_plain_fit(plan); }
  /// What a run says on standard error.
  static std::string said_by(const PlainFit& plan) {
    testing::internal::CaptureStderr();
    run(plan);
    return testing::internal::GetCapturedStderr();
  }
  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }
  fs::path checkpoint(const std::string& run, const std::string& name) const {
    return folder() / run / "checkpoints" / (name + ".ckpt");
  }
  std::string id_of(const std::string& run, const std::string& name = "last") const {
    return checkpoint_moment(checkpoint(run, name))->training;
  }
  std::set<std::string> names(const std::string& run) const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator{folder() / run / "checkpoints"}) {
      if (!entry.is_symlink()) names.insert(entry.path().stem().string());
    }
    return names;
  }
  /// As checkpoints were before trainings had ids.
  void forget_ids(const std::string& run) const {
    for (const auto& name : names(run)) {
      CheckpointContent content = read_checkpoint(checkpoint(run, name));
      content.training.clear();
      write_checkpoint(checkpoint(run, name), content);
    }
    fs::remove(folder() / run / "training.txt");
  }

 private:
  TempFolder folder_;
};

TEST_F(TrainingId, IsAnotherOneForEachTrainingAndStaysWhenItIsGoneOnWith) {
  for (const int ranks : {1, 2}) {
    PlainFit first = checkpointed("run", 1, ranks);
    std::mutex mutex;
    std::set<std::string> seen;
    first.callback = [&] { return std::make_shared<NotesIds>(mutex, seen); };
    run(first);
    const std::string id = id_of("run");
    EXPECT_TRUE(is_training_id(id)) << id;
    EXPECT_EQ(seen, std::set<std::string>{id}) << "the same on all ranks";
    first.options.max_epochs = 2;
    run(goes_on(first));
    EXPECT_EQ(id_of("run"), id);
    EXPECT_EQ(seen, std::set<std::string>{id});
    run(first);
    EXPECT_NE(id_of("run"), id) << "a second training in the same folder";
    PlainFit weights = checkpointed("weights", 1, ranks);
    run(goes_on(weights, (checkpoint("run", "last") / "model.safetensors").string()));
    EXPECT_NE(id_of("weights"), id_of("run")) << "weights alone are a start";
  }
}

TEST_F(TrainingId, OfTheLastCheckpointIsNotedInTheRunFolder) {
  run(checkpointed("run", 1));
  EXPECT_EQ(read_file(folder() / "run/training.txt"), id_of("run") + "\n");
  run(goes_on(checkpointed("run", 2)));
  EXPECT_EQ(read_file(folder() / "run/training.txt"), id_of("run") + "\n");
  run(checkpointed("run", 1));
  EXPECT_EQ(read_file(folder() / "run/training.txt"), id_of("run") + "\n");
  forget_ids("run");
  run(goes_on(checkpointed("other", 2), checkpoint("run", "last").string()));
  EXPECT_FALSE(fs::exists(folder() / "other/training.txt"));
  run(goes_on(checkpointed("run", 3)));
  EXPECT_EQ(id_of("run"), "") << "what was not known stays so";
}

TEST_F(TrainingId, OfADamagedLastCheckpointChoosesAmongTheOthers) {
  run(checkpointed("run", 2));
  PlainFit second = checkpointed("run", 2);  // in the same folder, of other names
  second.callback = [] {
    return std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.every_n_train_steps = 7});
  };
  second.options.max_steps = 23;
  second.options.max_epochs = 9;
  run(second);  // steps 7, 14, 21 and 23; of the first training there are 11 and 22
  second.options.max_steps = 25;
  fs::remove(checkpoint("run", "epoch=2-step=23") / "manifest.json");
  fs::remove_all(checkpoint("run", "epoch=1-step=21"));
  const std::string said = said_by(goes_on(second));
  EXPECT_TRUE(contains(said, "going on from " + checkpoint("run", "epoch=1-step=14").string()))
      << said;
  EXPECT_FALSE(contains(said, "another training")) << said;
}

TEST_F(TrainingId, LetsModelCheckpointGoOnWithItsListInAFolderThatWasMoved) {
  for (const int ranks : {1, 2}) {
    run(of_two("a", 3, ranks));
    EXPECT_EQ(names("a").size(), 2);
    fs::remove_all(folder() / "b");
    fs::rename(folder() / "a", folder() / "b");
    run(goes_on(of_two("b", 5, ranks)));
    EXPECT_EQ(names("b").size(), 2) << "those of before the move have gone";
  }
}

TEST_F(TrainingId, KeepsModelCheckpointFromWhatAnotherTrainingWrote) {
  run(of_two("a", 2));
  const auto of_a = names("a");
  run(of_two("b", 2));
  const std::string id = id_of("b");
  EXPECT_EQ(names("b"), of_a) << "the same names";
  // Into the folder of the other training.
  run(goes_on(of_two("b", 4), checkpoint("a", "last").string()));
  EXPECT_EQ(names("a"), of_a);
  EXPECT_EQ(names("b").size(), 4);
  for (const auto& name : of_a) EXPECT_EQ(id_of("b", name), id);
  EXPECT_EQ(id_of("b"), id_of("a"));
}

TEST_F(TrainingId, ThatIsNotKnownLeavesModelCheckpointItsListInTheSameFolderAlone) {
  run(of_two("a", 2));
  forget_ids("a");
  fs::create_directories(folder() / "b");
  fs::copy(folder() / "a", folder() / "b",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  run(goes_on(of_two("b", 4)));
  EXPECT_EQ(names("b").size(), 4) << "those of the same names may be another training's";
}

TEST_F(TrainingId, OtherSeedsAtAnEpochsEndAreTold) {
  run(checkpointed("run", 1));
  for (const int ranks : {1, 2}) {
    PlainFit other = goes_on(checkpointed("run", 2, ranks), checkpoint("run", "last").string());
    EXPECT_FALSE(contains(said_by(other), "seeded"));
    other.options.seed = 4;
    other.options.run_dir = (folder() / "other").string();
    const std::string said = said_by(other);
    const std::string line = "the checkpoint's training was seeded with 0, this one with 4";
    ASSERT_TRUE(contains(said, line)) << said;
    EXPECT_EQ(said.find(line, said.find(line) + 1), std::string::npos) << "once, by rank 0";
    run(checkpointed("run", 1));
  }
}

}  // namespace
}  // namespace muster::test
