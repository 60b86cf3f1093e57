#include "fake_training.h"
#include "run_fixture.h"
#include "support/texts.h"
#include "tests/base/expect_error.h"

#include <muster/train/model_summary.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <cstdio>
#include <mutex>

namespace muster::test {
namespace {

using Hooks = std::vector<std::string>;

/// Notes each hook as it runs and logs in it.
class Noting : public Module<Item, Item> {
 public:
  Hooks hooks;

  void setup(Step& step) override { note("setup", step); }
  void on_validation_model_eval(Step& step) override { note("model_eval", step), eval(); }
  void on_validation_start(Step& step) override { note("start", step); }
  void on_validation_epoch_start(Step& step) override { note("epoch_start", step); }
  void on_before_batch_transfer(Batch& /*batch*/, Step& step) override {
    note("before_transfer", step);
  }
  void transfer_batch_to_device(Batch& batch, Step& step) override {
    note("transfer", step);
    EXPECT_TRUE(step.device().is_cpu());
    EXPECT_EQ(batch.size(), 1);
  }
  void on_after_batch_transfer(Batch& /*batch*/, Step& step) override {
    note("after_transfer", step);
  }
  void on_validation_batch_start(const Batch& /*batch*/, Step& step) override {
    note("batch_start", step);
  }
  void validation_step(const Batch& /*batch*/, Step& step) override { note("step", step); }
  void on_validation_batch_end(const Batch& /*batch*/, Step& step) override {
    note("batch_end", step);
  }
  void on_validation_epoch_end(Step& step) override { note("epoch_end", step); }
  void on_validation_end(Step& step) override { note("end", step); }
  void on_validation_model_train(Step& step) override { note("model_train", step), train(); }
  void teardown(Step& step) override { note("teardown", step); }

 private:
  void note(const std::string& hook, Step& step) {
    hooks.push_back(hook);
    step.log("rank/" + hook, step.rank());
    step.log_image("image/" + hook, {at::full({3, 5}, 0.5)}, {.captions = {hook}, .index = 0});
    step.log_text("text/" + hook, "seen");
  }
};

TEST_F(RunTest, HooksRunInLightningsOrderAndEachMayLog) {
  const Loader<Item> loader{items(2)};
  results(1, [&](Trainer& trainer) {
    Noting module;
    const Report report = trainer.validate(module, loader);
    const Hooks batch{"before_transfer", "transfer", "after_transfer",
                      "batch_start",     "step",     "batch_end"};
    Hooks expected{"setup", "model_eval", "start", "epoch_start"};
    for (int i = 0; i < 2; ++i) {
      expected.insert(expected.end(), batch.begin(), batch.end());
    }
    for (const auto* hook : {"epoch_end", "end", "model_train", "teardown"}) {
      expected.emplace_back(hook);
    }
    EXPECT_EQ(module.hooks, expected);
    for (const auto& hook : expected) {
      EXPECT_EQ(report.get("rank/" + hook), 0.0) << hook;
    }
  });
}

TEST_F(RunTest, EveryHookLogsOnEveryRankThatRunsIt) {
  const Loader<Item> loader{items(2)};
  const std::string json = results(3, [&](Trainer& trainer) {
    Noting module;
    const Report report = trainer.validate(module, loader);
    EXPECT_EQ(report.get("rank/setup"), 1.0);  // ranks 0, 1 and 2
    EXPECT_EQ(report.get("rank/teardown"), 1.0);
    EXPECT_EQ(report.get("rank/step"), 0.5);  // ranks 0 and 1 have a batch
  });
  EXPECT_NE(json.find("image/teardown"), std::string::npos);
}

class Gathering : public Module<Item, Item> {
 public:
  std::vector<Item> predict_step(const Batch& batch, Step& /*step*/) override {
    return batch.samples();
  }
  void on_predict_batch_end(const std::vector<Item>& /*outputs*/, const Batch& batch,
                            Step& step) override {
    const int64_t k = batch.batch_idx();
    const auto shapes = step.all_gather(at::ones({k + 1, 2 * k + 1}));
    const auto names = step.all_gather("batch " + std::string(static_cast<size_t>(k), 'x'));
    const int64_t first = k / step.world_size() * step.world_size();
    const int64_t present = std::min<int64_t>(step.world_size(), batches - first);
    ASSERT_EQ(static_cast<int64_t>(shapes.size()), present);
    for (int64_t i = 0; i < present; ++i) {
      EXPECT_EQ(shapes[static_cast<size_t>(i)].sizes().vec(),
                (std::vector<int64_t>{first + i + 1, 2 * (first + i) + 1}));
      EXPECT_EQ(names[static_cast<size_t>(i)].size(), static_cast<size_t>(6 + first + i));
    }
    ++gathered;
  }
  static constexpr int64_t batches = 3;
  int64_t gathered = 0;
};

TEST_F(RunTest, GatheringInABatchHookWorksWhenBatchesAndRanksAreUneven) {
  const Loader<Item> loader{items(Gathering::batches)};
  for (const int ranks : {1, 2, 3, 5}) {
    std::mutex mutex;
    int64_t gathered = 0;
    results(ranks, [&](Trainer& trainer) {
      Gathering module;
      trainer.predict(module, loader);
      const std::lock_guard lock{mutex};
      gathered += module.gathered;
    });
    EXPECT_EQ(gathered, Gathering::batches);
  }
}

/// Gathers on rank 0 alone, while the other rank goes on.
class OnRankZeroOnly : public Module<Item, Item> {
 public:
  std::vector<Item> predict_step(const Batch& batch, Step& step) override {
    if (step.is_global_zero() && step.dataloader_idx() == 0) {
      step.all_gather(batch.batch_idx());
    }
    return batch.samples();
  }
};

TEST_F(RunTest, GatheringOnRankZeroOnlyIsAnErrorThatNamesEveryRanksPlace) {
  const Loader<Item> loader{items(4)};
  std::mutex mutex;
  std::vector<std::string> messages;
  EXPECT_THROW(run_threads(2,
                           [&](Group& group) {
                             Trainer trainer{options("run"), group};
                             OnRankZeroOnly module;
                             try {
                               trainer.predict(module, LoaderList<Item>{{&loader, &loader}});
                             } catch (const Error& error) {
                               EXPECT_EQ(error.kind(), ErrorKind::mismatch);
                               const std::lock_guard lock{mutex};
                               messages.emplace_back(error.what());
                               throw;
                             }
                           }),
               Error);
  ASSERT_EQ(messages.size(), 2U);
  for (const auto& message : messages) {
    EXPECT_NE(message.find("rank 0"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
    EXPECT_NE(message.find("hooks_test.cpp:"), std::string::npos) << message;
  }
}

/// Logs an image as `body` says.
class ImageLogging : public Module<Item> {
 public:
  std::function<void(Step&)> in_step = [](Step&) {};
  std::function<void(Step&)> at_end = [](Step&) {};
  void validation_step(const Batch& /*batch*/, Step& step) override { in_step(step); }
  void on_validation_epoch_end(Step& step) override { at_end(step); }
};

TEST_F(RunTest, AnImageWithoutASampleIsAnErrorThatSaysSo) {
  const Loader<Item> loader{items(1)};
  const auto message_of = [&](const std::function<void(ImageLogging&)>& prepare) {
    Trainer trainer{options("run"), Group::self()};
    ImageLogging module;
    prepare(module);
    try {
      trainer.validate(module, loader);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return std::string{error.what()};
    }
    return std::string{};
  };
  const auto image = at::ones({2, 2});
  EXPECT_NE(message_of([&](auto& m) {
              m.at_end = [&](Step& s) { s.log_image("a", {image}); };
            }).find("index"),
            std::string::npos);
  EXPECT_NE(message_of([&](auto& m) {
              m.in_step = [&](Step& s) { s.log_image("a", {image}), s.log_image("a", {image}); };
            }).find("2 times for a batch of 1"),
            std::string::npos);
  EXPECT_NE(message_of([&](auto& m) {
              m.in_step = [&](Step& s) { s.log_image("a", {image}, {.captions = {"x", "y"}}); };
            }).find("2 captions for 1 images"),
            std::string::npos);
}

/// Calls each collective in every hook.
class Collecting : public Module<Item, Item> {
 public:
  int64_t calls = 0;

  void setup(Step& step) override { call(step, step.world_size()); }
  void on_predict_start(Step& step) override { call(step, step.world_size()); }
  void on_predict_epoch_start(Step& step) override { call(step, step.world_size()); }
  void on_before_batch_transfer(Batch& batch, Step& step) override { within(batch, step); }
  void on_after_batch_transfer(Batch& batch, Step& step) override { within(batch, step); }
  void on_predict_batch_start(const Batch& batch, Step& step) override { within(batch, step); }
  std::vector<Item> predict_step(const Batch& batch, Step& step) override {
    within(batch, step);
    return batch.samples();
  }
  void on_predict_batch_end(const std::vector<Item>& /*outputs*/, const Batch& batch,
                            Step& step) override {
    within(batch, step);
  }
  void on_predict_epoch_end(Step& step) override { call(step, step.world_size()); }
  void on_predict_end(Step& step) override { call(step, step.world_size()); }
  void teardown(Step& step) override { call(step, step.world_size()); }

 private:
  /// Of 5 batches of one sample, the last round may be short.
  void within(const Batch& batch, Step& step) {
    const int64_t first = batch.batch_idx() / step.world_size() * step.world_size();
    call(step, std::min<int64_t>(step.world_size(), 5 - first));
  }
  void call(Step& step, int64_t present) {
    const std::string mine = "rank " + std::to_string(step.rank());
    EXPECT_EQ(step.all_gather(mine).size(), static_cast<size_t>(present));
    EXPECT_EQ(step.broadcast(mine), "rank 0");
    EXPECT_EQ(step.all_reduce(step.rank() + 1.0), static_cast<double>(present * (present + 1) / 2));
    EXPECT_EQ(step.all_reduce(step.rank(), ReduceOp::max), static_cast<double>(present - 1));
    ++calls;
  }
};

TEST_F(RunTest, EveryHookMayGatherBroadcastAndReduce) {
  const Loader<Item> loader{items(5)};
  for (const int ranks : {1, 2, 3, 7}) {
    results(ranks, [&](Trainer& trainer) {
      Collecting module;
      trainer.predict(module, loader);
      const int64_t batches = batches_of_rank(5, trainer.group().rank(), ranks);
      EXPECT_EQ(module.calls, 6 + 5 * batches);
    });
  }
}

TEST_F(RunTest, LimitsCountGlobalBatchesWhateverTheNumberOfRanks) {
  const Loader<Item> loader{items(9), {.batch_size = 2}};
  for (const int ranks : {1, 2, 5}) {
    for (const auto& [limit, samples] :
         std::vector<std::pair<BatchLimit, int64_t>>{{BatchLimit{2}, 4},
                                                     {BatchLimit{0.5}, 4},
                                                     {BatchLimit{1.0}, 9},
                                                     {BatchLimit{1}, 2},
                                                     {BatchLimit{0}, 0}}) {
      run_threads(ranks, [&, limit = limit, samples = samples](Group& group) {
        auto limited = options("limits");
        limited.limit_val_batches = limit;
        Trainer trainer{limited, group};
        ImageLogging module;
        EXPECT_EQ(trainer.validate(module, loader).samples, samples);
        group.finish();
      });
    }
  }
}

/// Named as libtorch names its modules.
struct LayerImpl : torch::nn::Module {
  LayerImpl() { register_parameter("weight", at::ones({2, 3})); }
};

TEST(ModelSummary, WritesThePartsOfTheModuleBeforeATraining) {
  torch::nn::Module net;
  net.register_module("layer", std::make_shared<LayerImpl>())->eval();
  FakeTraining training;
  training.module_ = &net;
  std::FILE* out = std::tmpfile();
  ASSERT_NE(out, nullptr);
  ModelSummary summary{{.max_depth = -1}, out};
  FakeRun run{training, summary};
  run.validation_start();
  EXPECT_EQ(std::ftell(out), 0);
  run.start();
  const std::string text = summarize(net);
  EXPECT_TRUE(has(text, "0 | layer | Layer |      6 | eval\n"));
  EXPECT_EQ(std::ftell(out), static_cast<long>(text.size()));
  std::fclose(out);
  EXPECT_EQ(error_of([&] { summarize(net, {.max_depth = -2}); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace muster::test
