#pragma once

#include <muster/base/record.h>
#include <muster/comm/group.h>
#include <muster/data/loader.h>
#include <muster/metrics/metric.h>
#include <muster/train/callback.h>
#include <muster/train/options.h>
#include <muster/train/prediction_shard.h>
#include <muster/train/step.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// A module that does what a test says and the Trainer that runs it, without their headers, which
/// take long to compile.
namespace muster::test {

/// A sample is its own index; the rest is for tests that want more of it.
struct Number {
  int64_t number = 0;
  at::Tensor odd{};
};

/// What the module does, in any stage. The loss of a batch is a weight, 0 at first, times the mean
/// of its numbers, so that a step of SGD at rate 1 takes the mean over the step's samples off it,
/// exactly.
struct Doing {
  using Batch = muster::Batch<Number>;

  std::function<void(const Batch&, Step&)> in_batch{};
  std::function<void(Step&)> at_start{};
  std::function<void(Step&)> at_end{};
  std::function<void(const Batch&, Step&)> in_training{};
  std::function<void(Step&)> at_training_end{};
  /// Registered under their names.
  std::vector<std::pair<std::string, Metric*>> metrics{};
  /// The name of the value that a plateau of patience 1 follows; none: there is no scheduler.
  std::string plateau{};

  // After a fit:
  double weight = 0;
  double rate = 1;  ///< of the optimizer
};

class Runner {
 public:
  Runner(const TrainerOptions& options, const Group& group);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner();

  Report validate(const Doing& doing, const Loader<Number>& loader);
  Report test(const Doing& doing, const Loader<Number>& loader);
  /// The numbers of what comes back; to: "all", "global_zero" or "none".
  std::vector<int64_t> predict(const Doing& doing, const Loader<Number>& loader,
                               const std::string& to = "all");
  void predict_each(const Doing& doing, const Loader<Number>& loader,
                    const std::function<void(const PredictionKey&, int64_t)>& sink);
  std::vector<std::filesystem::path> predict_to_shards(const Doing& doing,
                                                       const Loader<Number>& loader);
  Report fit(Doing& doing, const Loader<Number>& train, const Loader<Number>* val = nullptr,
             const std::string& ckpt_path = "");
  void add_callback(std::shared_ptr<Callback> callback);
  [[nodiscard]] Group& group();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::test
