#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/io/weights.h>

#include <algorithm>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_folder.h"
#include "tests/base/expect_error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class CheckpointFolder : public testing::Test {
 protected:
  static CheckpointContent content(int64_t step = 12) {
    return {.global_step = step,
            .epoch = 3,
            .model = {{"fc.weight", at::arange(step, step + 6, at::kFloat).view({2, 3})},
                      {"bn.num_batches_tracked", at::full({}, step, at::kLong)}},
            .files = {{"optimizer.safetensors",
                       safetensors_bytes({{"exp_avg", at::arange(6, at::kDouble)}})},
                      {"binary", std::string{"\0\xff binary", 9}},
                      {"state.json", "{}"},
                      {"empty", ""}}};
  }

  void expect_is(const CheckpointContent& found, const CheckpointContent& expected) {
    EXPECT_EQ(found.global_step, expected.global_step);
    EXPECT_EQ(found.epoch, expected.epoch);
    EXPECT_EQ(found.training, expected.training);
    EXPECT_EQ(found.files, expected.files);
    ASSERT_EQ(found.model.size(), expected.model.size());
    for (const auto& [name, tensor] : expected.model) {
      const auto same = [&, &name = name](const auto& item) { return item.first == name; };
      const auto at = std::find_if(found.model.begin(), found.model.end(), same);
      ASSERT_NE(at, found.model.end()) << name;
      EXPECT_TRUE(at::equal(at->second, tensor)) << name;
    }
  }

  static std::set<std::string> names_in(const fs::path& path) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator{path}) {
      names.insert(entry.path().filename().native());
    }
    return names;
  }

  void expect_damaged(const std::string& name) {
    const auto error = test::error_of([&] { read_checkpoint(folder_); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    EXPECT_TRUE(test::contains(error.what(), (folder_ / name).native())) << error.what();
  }

  test::TempFolder temp_;
  fs::path checkpoints_ = temp_ / "checkpoints";
  fs::path folder_ = checkpoints_ / "epoch=3.ckpt";
};

TEST_F(CheckpointFolder, ReadsBackWhatWasWritten) {
  write_checkpoint(folder_, content());
  expect_is(read_checkpoint(folder_), content());
  EXPECT_EQ(names_in(checkpoints_), std::set<std::string>{"epoch=3.ckpt"});
  EXPECT_EQ(names_in(folder_),
            (std::set<std::string>{"model.safetensors", "manifest.json", "optimizer.safetensors",
                                   "binary", "tensors.sha256", "state.json", "empty"}));
}

TEST_F(CheckpointFolder, ServesAsWeights) {
  write_checkpoint(folder_, content());
  NamedTensors model{{"fc.weight", at::full({2, 3}, 0.0)},
                     {"bn.num_batches_tracked", at::full({}, 0, at::kLong)}};
  load_weights(folder_, model);
  EXPECT_TRUE(at::equal(model[0].second, content().model[0].second));
}

TEST_F(CheckpointFolder, IsNoWeightsWhenItIsDamaged) {
  write_checkpoint(folder_, content());
  const auto file = folder_ / "model.safetensors";
  auto bytes = read_file(file);
  bytes.back() ^= 1;
  write_file_atomically(file, bytes);
  NamedTensors model{{"fc.weight", at::full({2, 3}, 0.0)},
                     {"bn.num_batches_tracked", at::full({}, 0, at::kLong)}};
  const auto error = test::error_of([&] { load_weights(folder_, model); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(test::contains(error.what(), "model.safetensors is damaged")) << error.what();
}

TEST_F(CheckpointFolder, TellsItsMoment) {
  EXPECT_FALSE(checkpoint_moment(folder_).has_value());
  write_checkpoint(folder_, {.global_step = 7, .epoch = 1});
  const auto moment = checkpoint_moment(folder_);
  ASSERT_TRUE(moment.has_value());
  EXPECT_EQ(moment->global_step, 7);
  EXPECT_EQ(moment->epoch, 1);
}

TEST_F(CheckpointFolder, HasAManifestInTheFormOfItsContract) {
  write_checkpoint(folder_, {.global_step = 7, .epoch = 1, .files = {{"a", "abc"}}});
  const auto manifest = read_file(folder_ / "manifest.json");
  EXPECT_TRUE(test::contains(manifest, R"({
  "global_step": 7,
  "epoch": 1,
  "files": {
    "a": {
      "size": 3,
      "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    },
    "model.safetensors": {)"))
      << manifest;
  expect_is(read_checkpoint(folder_), {.global_step = 7, .epoch = 1, .files = {{"a", "abc"}}});
}

TEST_F(CheckpointFolder, NamesTheTrainingThatWroteItWhereThatIsKnown) {
  const std::string id = "0123456789abcdef0123456789abcdef";
  CheckpointContent named = content();
  named.training = id;
  write_checkpoint(folder_, named);
  expect_is(read_checkpoint(folder_), named);
  EXPECT_EQ(checkpoint_moment(folder_)->training, id);
  for (const size_t at : {0, 31, 32}) {
    auto changed = id + "\n";
    changed[at] = '9';
    write_file_atomically(folder_ / "training.txt", changed, Durability::process);
    expect_damaged("training.txt");
    EXPECT_EQ(test::error_of([&] { checkpoint_moment(folder_); }).kind(), ErrorKind::data);
  }
  write_checkpoint(folder_, content());
  EXPECT_EQ(checkpoint_moment(folder_)->training, "");
  for (const std::string& wrong : {id + "0", "A" + id.substr(1)}) {
    named.training = wrong;
    EXPECT_EQ(test::error_of([&] { write_checkpoint(folder_, named); }).kind(), ErrorKind::usage);
  }
}

TEST_F(CheckpointFolder, NamesAFileWithAFlippedBit) {
  write_checkpoint(folder_, content());
  for (const auto* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const auto bytes = read_file(folder_ / name);
    for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      auto flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      write_file_atomically(folder_ / name, flipped, Durability::process);
      expect_damaged(name);
    }
    write_file_atomically(folder_ / name, bytes, Durability::process);
  }
  expect_is(read_checkpoint(folder_), content());
}

TEST_F(CheckpointFolder, NamesTheTensorWithAFlippedBit) {
  write_checkpoint(folder_, content());
  for (const auto& [name, tensor] :
       {std::pair{"model.safetensors", "fc.weight"}, {"optimizer.safetensors", "exp_avg"}}) {
    auto bytes = read_file(folder_ / name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);  // the larger elements come first
    write_file_atomically(folder_ / name, bytes, Durability::process);
    expect_damaged(name);
    const auto error = test::error_of([&] { read_checkpoint(folder_); });
    EXPECT_TRUE(test::contains(error.what(), std::string{"tensor '"} + tensor + "'"))
        << error.what();
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file_atomically(folder_ / name, bytes, Durability::process);
  }
  expect_is(read_checkpoint(folder_), content());
}

TEST_F(CheckpointFolder, SeesAFlippedBitInEveryByteOfTheManifest) {
  write_checkpoint(folder_, content());
  const auto bytes = read_file(folder_ / "manifest.json");
  for (size_t at = 0; at < bytes.size(); ++at) {
    auto flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    write_file_atomically(folder_ / "manifest.json", flipped, Durability::process);
    const auto error = test::error_of([&] { read_checkpoint(folder_); });
    ASSERT_EQ(error.kind(), ErrorKind::data) << flipped;
    ASSERT_TRUE(test::contains(error.what(), "manifest.json")) << error.what();
  }
}

TEST_F(CheckpointFolder, NamesAMissingAndATruncatedFile) {
  for (const auto* name : {"model.safetensors", "state.json", "manifest.json"}) {
    write_checkpoint(folder_, content());
    fs::resize_file(folder_ / name, 1);
    expect_damaged(name);
    fs::remove(folder_ / name);
    expect_damaged(name);
  }
}

TEST_F(CheckpointFolder, SeesZeroBytesBehindTheManifest) {
  write_checkpoint(folder_, content());
  const auto manifest = read_file(folder_ / "manifest.json");
  write_file_atomically(folder_ / "manifest.json", manifest + std::string(3, '\0'));
  expect_damaged("manifest.json");
}

TEST_F(CheckpointFolder, RefusesNamesThatLeadOutOfTheFolder) {
  write_checkpoint(folder_, content());
  write_file_atomically(checkpoints_ / "secret", "s");
  auto manifest = read_file(folder_ / "manifest.json");
  manifest.replace(manifest.find("\"empty\""), 7, "\"../secret\"");
  write_file_atomically(folder_ / "manifest.json", manifest);
  expect_damaged("manifest.json");

  for (const auto* name : {"", ".", "..", "a/b", "model.safetensors", "manifest.json"}) {
    const auto error = test::error_of([&] { write_checkpoint(folder_, {.files = {{name, "x"}}}); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << name;
  }
}

TEST_F(CheckpointFolder, IsUsageWhereThereIsNone) {
  EXPECT_EQ(test::error_of([&] { read_checkpoint(folder_); }).kind(), ErrorKind::usage);
  write_file_atomically(folder_, "a file");
  EXPECT_EQ(test::error_of([&] { read_checkpoint(folder_); }).kind(), ErrorKind::usage);
}

TEST_F(CheckpointFolder, ReplacesOneThatIsThere) {
  write_checkpoint(folder_, content(1));
  auto next = content(2);
  next.files.erase("empty");
  write_checkpoint(folder_ / "", next);
  expect_is(read_checkpoint(folder_), next);
  EXPECT_FALSE(fs::exists(folder_ / "empty"));
  EXPECT_EQ(names_in(checkpoints_), std::set<std::string>{"epoch=3.ckpt"});
}

TEST_F(CheckpointFolder, KeepsTheOldOneWhenTheNewCannotBeWritten) {
  write_checkpoint(folder_, content(1));
  auto next = content(2);
  next.model.emplace_back("fc.weight", at::full({1}, 0.0));
  EXPECT_EQ(test::error_of([&] { write_checkpoint(folder_, next); }).kind(), ErrorKind::usage);
  next = content(2);
  next.files[std::string(300, 'x')] = "no file system takes this name";
  EXPECT_EQ(test::error_of([&] { write_checkpoint(folder_, next); }).kind(), ErrorKind::output);
  expect_is(read_checkpoint(folder_), content(1));
  EXPECT_EQ(names_in(checkpoints_), std::set<std::string>{"epoch=3.ckpt"});
}

TEST_F(CheckpointFolder, IsOutputWhereNoFolderCanBeMade) {
  write_file_atomically(checkpoints_, "a file");
  EXPECT_EQ(test::error_of([&] { write_checkpoint(folder_, content()); }).kind(),
            ErrorKind::output);
  const auto file = temp_ / "file.ckpt";
  write_file_atomically(file, "a file");
  EXPECT_EQ(test::error_of([&] { write_checkpoint(file, content()); }).kind(), ErrorKind::output);
  EXPECT_EQ(read_file(file), "a file");
}

TEST_F(CheckpointFolder, RemovesWhatDeadWritersLeftAndNothingElse) {
  const auto dead = checkpoints_ / ".old.ckpt.saving-0123456789abcdef";
  const auto alive = checkpoints_ / ".new.ckpt.saving-fedcba9876543210";
  const std::set<std::string> others{"a.saving-0123456789abcdef", ".b.saving-0123"};
  write_file_atomically(dead / "model.safetensors", "half");
  write_file_atomically(alive / "model.safetensors", "half");
  for (const auto& name : others) {
    make_folder(checkpoints_ / name);
  }
  const int lock = open(alive.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  write_checkpoint(folder_, content());
  auto expected = others;
  expected.insert({"epoch=3.ckpt", alive.filename().native()});
  EXPECT_EQ(names_in(checkpoints_), expected);
  close(lock);
  write_checkpoint(folder_, content());
  EXPECT_FALSE(fs::exists(alive));
}

TEST_F(CheckpointFolder, IsReachedThroughALinkThatMoves) {
  const auto link = checkpoints_ / "last.ckpt";
  const auto second = checkpoints_ / "epoch=4.ckpt";
  write_checkpoint(folder_, content(1));
  write_checkpoint(second, content(2));
  point_to_checkpoint(link, folder_);
  expect_is(read_checkpoint(link), content(1));
  point_to_checkpoint(link, second / "");
  expect_is(read_checkpoint(link), content(2));
  EXPECT_EQ(fs::read_symlink(link), "epoch=4.ckpt") << "a run folder may be moved";
  EXPECT_EQ(names_in(checkpoints_),
            (std::set<std::string>{"epoch=3.ckpt", "epoch=4.ckpt", "last.ckpt"}));
  EXPECT_EQ(test::error_of([&] { write_checkpoint(link, content()); }).kind(), ErrorKind::output)
      << "a link is no place to write to";
}

TEST_F(CheckpointFolder, RefusesLinksThatCannotBe) {
  write_checkpoint(folder_, content());
  const auto kind = [](const fs::path& link, const fs::path& target) {
    return test::error_of([&] { point_to_checkpoint(link, target); }).kind();
  };
  EXPECT_EQ(kind(checkpoints_ / "last.ckpt", checkpoints_ / "none.ckpt"), ErrorKind::usage);
  EXPECT_EQ(kind(temp_ / "last.ckpt", folder_), ErrorKind::usage);
  EXPECT_EQ(kind(folder_, folder_), ErrorKind::usage);
  make_folder(checkpoints_ / "best.ckpt" / "something");
  EXPECT_EQ(kind(checkpoints_ / "best.ckpt", folder_), ErrorKind::output);
  EXPECT_TRUE(fs::is_directory(checkpoints_ / "best.ckpt" / "something"));
  expect_is(read_checkpoint(folder_), content());
}

TEST_F(CheckpointFolder, WithAPipeForAFileIsRefusedAtOnce) {
  for (const auto* name : {"manifest.json", "model.safetensors", "binary"}) {
    write_checkpoint(folder_, content());
    fs::remove(folder_ / name);
    ASSERT_EQ(mkfifo((folder_ / name).c_str(), 0600), 0);
    EXPECT_EQ(test::error_of([&] { read_checkpoint(folder_); }).kind(), ErrorKind::data) << name;
    fs::remove_all(folder_);
  }
}

TEST_F(CheckpointFolder, WhoseManifestNestsWithoutEndIsRefused) {
  write_checkpoint(folder_, content());
  write_file_atomically(folder_ / "manifest.json", std::string(1'000'000, '['));
  const auto error = test::error_of([&] { read_checkpoint(folder_); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(test::contains(error.what(), "nests more than 64 levels")) << error.what();
}

}  // namespace
}  // namespace muster
