#include "fake_training.h"
#include "normed_module.h"
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
    EXPECT_EQ(step.all_reduce(step.rank() + 1.0),
              0.5 * static_cast<double>(present * (present + 1)));
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

TEST_F(SyncBatchNormTest, TrainsAsOneProcessDoesWithTheBatchesOfARoundInOne) {
  for (const int64_t accumulate : {1, 2}) {
    for (const int64_t validated : {0, 5}) {
      // 11 batches: the last round has one of two, and the last step one of two rounds.
      expect_as_one({.train = in_order(22, 4), .accumulate = accumulate},
                    {.ranks = 2, .train = in_order(22, 2), .accumulate = accumulate}, validated);
      // The last round has a batch of 2, one of 1 and none.
      expect_as_one({.train = in_order(21, 6), .accumulate = accumulate},
                    {.ranks = 3, .train = in_order(21, 2), .accumulate = accumulate}, validated);
    }
  }
}

TEST_F(SyncBatchNormTest, OfAShardThatEndsBeforeTheOthers) {
  const auto rounds = in_batches(
      22,
      {{0, 1, 14, 15}, {2, 3, 16, 17}, {4, 5, 18, 19}, {6, 7, 20, 21}, {8, 9}, {10, 11}, {12, 13}});
  for (const int64_t accumulate : {1, 2}) {
    expect_as_one({.train = rounds, .accumulate = accumulate},
                  {.ranks = 2, .train = shards(), .accumulate = accumulate});
  }
}

TEST_F(SyncBatchNormTest, OfRanksThatHaveNoBatchInSomeRoundsOfAStep) {
  // Of batches of 2, the first and the fourth are skipped: rank 0 has none in the first round, rank
  // 1 none in the second.
  const Loader<Point> skipping{
      make_dataset(16,
                   [data = points(16)](int64_t i, Rng&) {
                     const bool skip = i < 2 || i == 6 || i == 7 || i == 15;
                     return skip ? std::nullopt : std::optional{data[static_cast<size_t>(i)]};
                   }),
      {.batch_size = 2}};
  const auto rounds = in_batches(16, {{2, 3}, {4, 5}, {8, 9, 10, 11}, {12, 13, 14}});
  for (const int64_t accumulate : {1, 2, 4}) {
    expect_as_one({.train = rounds, .accumulate = accumulate},
                  {.ranks = 2, .train = skipping, .accumulate = accumulate});
  }
}

TEST_F(SyncBatchNormTest, IsTorchsToTheBitOnOneRankAndWhereItIsFrozen) {
  const auto torchs = fit<OfTorch>({.train = in_order(22, 2)}, 5);
  const auto ours = fit<OfMuster>({.train = in_order(22, 2)}, 5);
  EXPECT_TRUE(ours[0].parameters.equal(torchs[0].parameters));
  EXPECT_TRUE(ours[0].averages.equal(torchs[0].averages));
  EXPECT_EQ(ours[0].val_loss, torchs[0].val_loss);

  const auto freeze = [](auto& net) { net.first->eval(), net.second->eval(); };
  const auto frozen = fit<OfTorch>({.ranks = 2, .train = in_order(22, 2), .set = freeze});
  const auto our_frozen = fit<OfMuster>({.ranks = 2, .train = in_order(22, 2), .set = freeze});
  EXPECT_TRUE(our_frozen[1].parameters.equal(frozen[1].parameters));
  EXPECT_TRUE(our_frozen[1].averages.equal(frozen[1].averages));
}

TEST_F(SyncBatchNormTest, BuffersOfOtherLayersEndAsRankZerosOnAllRanks) {
  const auto ends = fit<OfTorch>({.ranks = 2, .train = in_order(22, 2)});
  EXPECT_FALSE(ends[1].averages.equal(ends[0].averages));
  EXPECT_TRUE(ends[1].left.equal(ends[0].averages));
}

TEST_F(SyncBatchNormTest, RanksThatRunOtherLayersAreAMismatchAndNoHang) {
  using Loss = std::function<at::Tensor(OfMuster&, const OfMuster::Batch&, Step&)>;
  const auto x = [](const OfMuster::Batch& batch) { return batch.stack(&Point::x); };
  const std::vector<Loss> losses{
      [&](OfMuster& net, const auto& batch, Step&) {  // no layer
        return net.loss(at::linear(x(batch), net.parameters()[0]), batch);
      },
      [&](OfMuster& net, const auto& batch, Step&) {  // one
        return net.loss(net.hidden(x(batch)), batch);
      },
      [&](OfMuster& net, const auto& batch, Step&) {  // three
        return net.loss(net.second(net.second(net.hidden(x(batch)))), batch);
      },
      [&](OfMuster& net, const auto& batch, Step&) {  // both, of which the loss uses one
        const at::Tensor hidden = net.hidden(x(batch));
        return net.loss(hidden + net.second(hidden).detach(), batch);
      },
      [&](OfMuster& net, const auto& batch, Step&) {  // both, of which it uses none
        return net.loss(net.second(net.hidden(x(batch))).detach(), batch);
      },
  };
  for (const auto& loss : losses) {
    // Batch 3 is rank 1's of 2, batch 10 is one of two in the last, uneven round of 3.
    for (const auto& [ranks, where] : {std::pair{2, 3}, {3, 10}}) {
      Plan<OfMuster> plan{.ranks = ranks, .train = in_order(22, 2)};
      plan.set = [&, where = where](OfMuster& net) {
        net.other_loss = [&, where](OfMuster& m, const auto& batch, Step& step) {
          return batch.batch_idx() == where ? loss(m, batch, step) : m.loss(batch);
        };
      };
      plan.set_options = [](TrainerOptions& options) {
        options.strategy = Strategy::ddp_find_unused_parameters_true;
      };
      const Error error = error_of([&] { fit(plan); });
      EXPECT_EQ(error.kind(), ErrorKind::mismatch)
          << "loss " << &loss - losses.data() << " on " << ranks << ": " << error.what();
    }
  }
}

TEST_F(SyncBatchNormTest, ALayerThatNoLossUsesIsNotWaitedForInBackward) {
  const auto unused = [](auto& net, const auto& batch, Step&) {
    const at::Tensor hidden = net.hidden(batch.stack(&Point::x));
    return net.loss(hidden + net.second(hidden).detach(), batch);
  };
  const auto options = [](TrainerOptions& o) {
    o.strategy = Strategy::ddp_find_unused_parameters_true;
  };
  expect_as_one({.train = in_order(22, 4), .set = [&](OfTorch& net) { net.other_loss = unused; }},
                {.ranks = 2,
                 .train = in_order(22, 2),
                 .set = [&](OfMuster& net) { net.other_loss = unused; },
                 .set_options = options});
}

TEST_F(SyncBatchNormTest, HooksMayGatherAfterAStepInWhichARankHadNoBatch) {
  const auto gather = [](auto& net) { net.gathers_at_batch_end = true; };
  const auto few_rows = [](TrainerOptions& options) { options.log_every_n_steps = 1000; };
  for (const int64_t accumulate : {1, 2}) {
    const auto with = fit<OfMuster>({.ranks = 2,
                                     .train = shards(),
                                     .accumulate = accumulate,
                                     .set = gather,
                                     .set_options = few_rows});
    const auto without = fit<OfMuster>({.ranks = 2, .train = shards(), .accumulate = accumulate});
    EXPECT_TRUE(with[1].parameters.equal(without[1].parameters));
  }
}

TEST(SyncBatchNorm, HasTorchsNamesOptionsAndErrors) {
  SyncBatchNorm ours{torch::nn::BatchNorm2dOptions(5).momentum(0.3).eps(0.5)};
  EXPECT_EQ(ours->options.momentum, 0.3);
  EXPECT_EQ(ours->options.eps, 0.5);
  torch::nn::BatchNorm2d torchs{5};
  EXPECT_EQ(ours->named_parameters().keys(), torchs->named_parameters().keys());
  EXPECT_EQ(ours->named_buffers().keys(), torchs->named_buffers().keys());

  ours->forward(some_numbers({2, 5, 1, 3}, 1).to(at::kFloat));
  const auto copy = std::dynamic_pointer_cast<SyncBatchNormImpl>(ours->clone());
  EXPECT_TRUE(copy->running_mean.equal(ours->running_mean));
  copy->reset_parameters();
  EXPECT_FALSE(copy->running_mean.equal(ours->running_mean));
  EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 1);

  const SyncBatchNorm bare{
      SyncBatchNormOptions{.num_features = 2, .affine = false, .track_running_stats = false}};
  EXPECT_TRUE(bare->parameters().empty() && bare->buffers().empty());
  EXPECT_EQ(error_of([] { SyncBatchNorm{0}; }).kind(), ErrorKind::usage);
  const Error error = error_of([&] { ours->forward(at::ones({2, 3})); });
  EXPECT_TRUE(has(error.what(), "SyncBatchNorm takes [N, 5] or [N, 5, ...], not [2, 3]"));
}

}  // namespace
}  // namespace muster::test
