#pragma once

#include "base/expect_error.h"
#include "doing.h"
#include "support/program.h"
#include "support/temp_folder.h"
#include "support/texts.h"

#include <muster/base/files.h>
#include <muster/metrics/aggregate.h>
#include <muster/train/early_stopping.h>
#include <muster/train/model_checkpoint.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Small runs on 1 to 8 threads whose right answer can be seen.
namespace muster::test {

inline std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

inline Loader<Number> numbers(int64_t count, LoaderOptions options = {}) {
  return Loader<Number>{
      make_dataset(count, [](int64_t index, Rng&) { return Number{.number = index}; }),
      std::move(options)};
}

/// Streams that end after `counts[rank]` samples; together they are 0, 1, 2, ...
inline Loader<Number> shards(const std::vector<int64_t>& counts, LoaderOptions options = {}) {
  const auto stream = make_sharded([counts](const StreamContext& context) {
    const auto mine = counts.begin() + context.rank;
    const int64_t first = std::accumulate(counts.begin(), mine, int64_t{0});
    return [i = first, end = first + *mine]() mutable -> std::optional<IndexedSample<Number>> {
      if (i == end) return std::nullopt;
      const int64_t index = i++;
      return IndexedSample<Number>{index, {.number = index}};
    };
  });
  return Loader<Number>{stream, std::move(options)};
}

/// The mean of a batch's numbers, as a user logs it.
inline void log_mean(const Doing::Batch& batch, Step& step) {
  step.log("mean", batch.stack(&Number::number).to(at::kDouble).mean());
}

class Complaints : public ::testing::Test {
 protected:
  using Body = std::function<void(Runner&)>;

  [[nodiscard]] TrainerOptions options(const std::string& run) const {
    TrainerOptions options{.run_dir = (folder_ / run).string()};
    options.logger = options.enable_progress_bar = options.enable_model_summary = false;
    return options;
  }
  /// Of a training that is as silent.
  [[nodiscard]] TrainerOptions training(const std::string& run, int64_t epochs = 1) const {
    TrainerOptions training = options(run);
    training.max_epochs = epochs;
    training.num_sanity_val_steps = 0;
    training.enable_checkpointing = false;
    return training;
  }
  [[nodiscard]] std::filesystem::path folder(const std::string& run) const { return folder_ / run; }
  [[nodiscard]] static std::string name_of(int ranks) { return "W" + std::to_string(ranks); }

  static void on_ranks(int ranks, const TrainerOptions& options, const Body& body) {
    run_threads(ranks, [&](Group& group) {
      Runner runner{options, group};
      body(runner);
      group.finish();
    });
  }
  /// Runs on W = 1, 2, 3, 4 and `more`: everything that a run promises must be the same bytes.
  void everywhere(const Body& body, const std::vector<int>& more = {}) const {
    std::vector<int> worlds{1, 2, 3, 4};
    worlds.insert(worlds.end(), more.begin(), more.end());
    for (const int ranks : worlds) {
      on_ranks(ranks, options(name_of(ranks)), body);
      EXPECT_EQ(files(name_of(ranks)), files("W1")) << ranks << " ranks";
    }
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> files(
      const std::string& run) const {
    return files_of(folder(run), {"results.json", "tables", "predictions", "media"});
  }
  /// The numbers that the ranks together evaluate, sorted.
  [[nodiscard]] std::vector<int64_t> seen(int ranks, const Loader<Number>& loader) const {
    std::mutex mutex;
    std::vector<int64_t> all;
    on_ranks(ranks, options("seen"), [&](Runner& runner) {
      Doing module;
      module.in_batch = [&](const auto& batch, Step&) {
        const std::lock_guard lock{mutex};
        for (const auto& sample : batch.samples()) all.push_back(sample.number);
      };
      EXPECT_EQ(runner.validate(module, loader).samples, 5);
    });
    std::sort(all.begin(), all.end());
    return all;
  }
  /// What each rank's Error says, in no order; each is of `kind`.
  [[nodiscard]] std::vector<std::string> errors(int ranks, ErrorKind kind, const Body& body) const {
    std::mutex mutex;
    std::vector<std::string> messages;
    EXPECT_ANY_THROW(on_ranks(ranks, options("errors"), [&](Runner& runner) {
      try {
        body(runner);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        const std::lock_guard lock{mutex};
        messages.emplace_back(error.what());
        throw;
      }
    }));
    EXPECT_EQ(messages.size(), static_cast<size_t>(ranks));
    return messages;
  }

  /// How a training ended on one rank whose validations logged `score`.
  struct Ending {
    std::string best{};
    std::optional<double> best_score{};
    std::optional<int64_t> stopped_epoch{};
    int64_t step = 0;
    double rate = 0;

    friend bool operator==(const Ending&, const Ending&) = default;
  };
  /// A training of at most 9 epochs that is watched by a checkpoint, early stopping and a plateau;
  /// all ranks must end alike. A rank without a score logs nothing.
  [[nodiscard]] Ending ending(
      int ranks, const std::string& filename,
      const std::function<std::optional<double>(const Step&)>& score) const {
    TrainerOptions watched = training(name_of(ranks), 9);
    watched.enable_checkpointing = true;
    std::mutex mutex;
    std::vector<Ending> endings;
    on_ranks(ranks, watched, [&](Runner& runner) {
      Doing module;
      module.at_end = [&](Step& step) {
        if (const auto value = score(step)) step.log("score", *value);
      };
      module.plateau = "score";
      const auto checkpoint = std::make_shared<ModelCheckpoint>(
          ModelCheckpointOptions{.monitor = "score", .save_top_k = 1, .filename = filename});
      const auto stopper =
          std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "score", .patience = 3});
      runner.add_callback(stopper);
      runner.add_callback(checkpoint);
      const auto val = numbers(3);
      const Report report = runner.fit(module, numbers(5, {.batch_size = 2}), &val);
      EXPECT_TRUE(std::filesystem::exists(checkpoint->best_model_path()));
      const std::lock_guard lock{mutex};
      endings.push_back({checkpoint->best_model_path(), checkpoint->best_model_score(),
                         stopper->stopped_epoch(), report.step, module.rate});
    });
    for (const auto& one : endings) EXPECT_EQ(one, endings[0]) << ranks << " ranks";
    return endings.at(0);
  }

 private:
  TempFolder folder_;
};

}  // namespace muster::test
