#pragma once

#include "base/expect_error.h"
#include "fit_module.h"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace muster::test {

inline void expect_error(ErrorKind kind, const std::vector<std::string>& parts,
                         const std::function<void()>& action) {
  const Error error = error_of(action);
  EXPECT_EQ(error.kind(), kind) << error.what();
  for (const auto& part : parts) EXPECT_TRUE(contains(error.what(), part)) << error.what();
}

/// Fits of a Regression, by one Trainer a rank on threads.
class FitTest : public RunTest {
 protected:
  struct Run {
    Regression& module;
    Trainer& trainer;
    const Report& report;
    const Recorder& recorder;
  };
  /// `set` changes the module and the Recorder of each rank.
  struct Plan {
    int ranks = 1;
    TrainerOptions options{};
    at::ScalarType dtype = at::kDouble;
    int64_t train = 22;  ///< points
    int64_t val = 0;
    int64_t batch_size = 2;
    bool shuffle = true;
    std::string ckpt_path{};
    /// Another loader than that of `train` points.
    std::optional<Loader<Point>> loader{};
    std::function<void(Regression&, Recorder&)> set{};
    std::function<void(Trainer&)> add_callbacks{};
  };

  Plan plan(const std::string& run, int ranks = 1) const {
    Plan plan{.ranks = ranks, .options = options(run)};
    plan.options.max_epochs = 2;
    plan.options.enable_model_summary = false;
    plan.options.enable_checkpointing = false;
    return plan;
  }

  /// `see` looks at what came out, rank by rank.
  static void fit(const Plan& plan, const std::function<void(const Run&)>& see) {
    const Loader<Point> train = plan.loader.value_or(Loader<Point>{
        points(plan.train, plan.dtype), {.batch_size = plan.batch_size, .shuffle = plan.shuffle}});
    const Loader<Point> val{points(plan.val, plan.dtype), {.batch_size = plan.batch_size}};
    std::mutex mutex;
    run_threads(plan.ranks, [&](Group& group) {
      Trainer trainer{plan.options, group};
      const auto recorder = std::make_shared<Recorder>();
      trainer.add_callback(recorder);
      Regression module{plan.dtype};
      if (plan.set) plan.set(module, *recorder);
      if (plan.add_callbacks) plan.add_callbacks(trainer);
      const auto loaders = plan.val > 0 ? LoaderList<Point>{val} : LoaderList<Point>{};
      const Report report = trainer.fit(module, train, loaders, plan.ckpt_path);
      {
        const std::lock_guard lock{mutex};
        see({module, trainer, report, *recorder});
      }
      group.finish();
    });
  }

  /// The parameters that all ranks end with.
  static at::Tensor parameters_after(const Plan& plan) {
    at::Tensor parameters;
    fit(plan, [&](const Run& run) {
      const auto mine = run.module.flat();
      if (parameters.defined()) {
        EXPECT_TRUE(mine.equal(parameters)) << "ranks differ";
      }
      parameters = mine;
    });
    return parameters;
  }
};

}  // namespace muster::test
