#pragma once

#include <muster/value/value.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace muster {

/// Learning rates over time: each is that of the scheduler of the same name in Python's
/// torch.optim.lr_scheduler (2.13), for every parameter group. Made by the functions below around
/// an optimizer that must outlive it and keep its groups; making one sets the rates of step 0, and
/// takes the rates that it finds as the initial ones. Several work on one optimizer only as parts
/// of `sequential_lr` or `chained_scheduler`. One thread.
///
/// A rate that is not finite, and options that make no sense, are an Error of kind `usage`.
class LrScheduler {
 public:
  LrScheduler() = default;
  LrScheduler(const LrScheduler&) = delete;
  LrScheduler& operator=(const LrScheduler&) = delete;
  virtual ~LrScheduler() = default;

  /// Goes one step on and sets the optimizer's rates. `metric` is for `reduce_lr_on_plateau` alone;
  /// Error of kind `usage` when that gets none.
  virtual void step(std::optional<double> metric = std::nullopt) = 0;
  /// The rates of the optimizer's groups now.
  [[nodiscard]] virtual std::vector<double> rates() const = 0;
  /// True when `step` needs a metric.
  [[nodiscard]] virtual bool needs_metric() const { return false; }

  /// How far it is: all that a resumed run needs. The options are not in it.
  [[nodiscard]] virtual Value state() const = 0;
  /// Goes on from there, and sets the optimizer's rates (and momentum, where it is cycled) of that
  /// step. Error of kind `data` for the state of another kind of scheduler or number of groups.
  virtual void load_state(const Value& state) = 0;
};

struct StepLrOptions {
  int64_t step_size = 0;  ///< steps between two decays; must be given
  double gamma = 0.1;     ///< factor of a decay
};
std::unique_ptr<LrScheduler> step_lr(torch::optim::Optimizer& optimizer,
                                     const StepLrOptions& options);

struct MultiStepLrOptions {
  std::vector<int64_t> milestones{};  ///< steps with a decay; one named twice counts twice
  double gamma = 0.1;                 ///< factor of a decay
};
std::unique_ptr<LrScheduler> multi_step_lr(torch::optim::Optimizer& optimizer,
                                           const MultiStepLrOptions& options);

struct ExponentialLrOptions {
  double gamma = 0.0;  ///< factor of each step, above 0; must be given
};
std::unique_ptr<LrScheduler> exponential_lr(torch::optim::Optimizer& optimizer,
                                            const ExponentialLrOptions& options);

struct PolynomialLrOptions {
  int64_t total_iters = 5;  ///< steps until the rate is 0
  double power = 1.0;       ///< of the part that is left, above 0
};
std::unique_ptr<LrScheduler> polynomial_lr(torch::optim::Optimizer& optimizer,
                                           const PolynomialLrOptions& options);

/// Warm-up: from a part of the rate to the rate in a straight line.
struct LinearLrOptions {
  double start_factor = 1.0 / 3;  ///< of step 0, in (0, 1]
  double end_factor = 1.0;        ///< of step `total_iters` and later, in [0, 1]
  int64_t total_iters = 5;        ///< steps from one to the other
};
std::unique_ptr<LrScheduler> linear_lr(torch::optim::Optimizer& optimizer,
                                       const LinearLrOptions& options);

struct ConstantLrOptions {
  double factor = 1.0 / 3;  ///< of the steps before `total_iters`, in (0, 1]
  int64_t total_iters = 5;  ///< steps with the factor
};
std::unique_ptr<LrScheduler> constant_lr(torch::optim::Optimizer& optimizer,
                                         const ConstantLrOptions& options);

struct CosineAnnealingLrOptions {
  int64_t t_max = 0;     ///< steps from the highest rate to the lowest; must be given
  double eta_min = 0.0;  ///< the lowest rate
};
std::unique_ptr<LrScheduler> cosine_annealing_lr(torch::optim::Optimizer& optimizer,
                                                 const CosineAnnealingLrOptions& options);

struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0 = 0;       ///< steps until the first restart; must be given
  int64_t t_mult = 1;    ///< factor of the steps until the next one, 1 to 1,000,000
  double eta_min = 0.0;  ///< the lowest rate
};
std::unique_ptr<LrScheduler> cosine_annealing_warm_restarts(
    torch::optim::Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options);

/// Sets the momentum of SGD and RMSprop, or the first beta of Adam and AdamW, too. Lists hold one
/// number for all groups or one for each.
struct OneCycleLrOptions {
  enum class Anneal { cos, linear };

  std::vector<double> max_lr{};          ///< the peak; must be given
  int64_t total_steps = 0;               ///< of the whole cycle; must be given
  double pct_start = 0.3;                ///< part of the steps in which the rate grows, in [0, 1]
  Anneal anneal_strategy = Anneal::cos;  ///< the curve between two rates
  bool cycle_momentum = true;            ///< whether momentum goes the other way
  std::vector<double> base_momentum = {0.85};  ///< the lowest, at the peak of the rate
  std::vector<double> max_momentum = {0.95};   ///< the highest, at the beginning and the end
  double div_factor = 25.0;                    ///< peak over rate of step 0
  double final_div_factor = 1e4;               ///< rate of step 0 over that of the last step
  bool three_phase = false;  ///< down to the rate of step 0 first, then to the last
};
/// A step beyond `total_steps` is an Error of kind `usage`.
std::unique_ptr<LrScheduler> one_cycle_lr(torch::optim::Optimizer& optimizer,
                                          const OneCycleLrOptions& options);

struct LambdaLrOptions {
  /// Factor of the initial rate by step: one function for all groups or one for each. They are not
  /// in `state()`; must be given.
  std::vector<std::function<double(int64_t step)>> factors{};
};
std::unique_ptr<LrScheduler> lambda_lr(torch::optim::Optimizer& optimizer,
                                       const LambdaLrOptions& options);

struct ReduceLrOnPlateauOptions {
  enum class Mode { min, max };
  enum class ThresholdMode { rel, abs };

  Mode mode = Mode::min;    ///< whether a better metric is lower or higher
  double factor = 0.1;      ///< of a reduction, in [0, 1)
  int64_t patience = 10;    ///< steps without a better metric that bring none
  double threshold = 1e-4;  ///< by how much a metric must be better
  /// Whether that is a part of the best, or a difference.
  ThresholdMode threshold_mode = ThresholdMode::rel;
  int64_t cooldown = 0;                ///< steps after a reduction that are not counted
  std::vector<double> min_lr = {0.0};  ///< no rate falls below; one for all groups or one for each
  double eps = 1e-8;                   ///< a smaller change of the rate is not made
};
/// Its `step` needs the metric; one that is NaN is not better.
std::unique_ptr<LrScheduler> reduce_lr_on_plateau(torch::optim::Optimizer& optimizer,
                                                  const ReduceLrOnPlateauOptions& options);

/// One after the other. `schedulers` were made by the functions above around the same optimizer in
/// the order of the list, right before, as in
/// `sequential_lr(sgd, {.schedulers = {linear_lr(sgd, {}), step_lr(sgd, {.step_size = 9})}, ...})`.
/// None may be a plateau, a sequence or a chain: torch cannot start these at a milestone.
struct SequentialLrOptions {
  /// At least one; they are not stepped elsewhere.
  std::vector<std::shared_ptr<LrScheduler>> schedulers{};
  /// The steps that are step 0 of each but the first: from 0, rising.
  std::vector<int64_t> milestones{};
};
std::unique_ptr<LrScheduler> sequential_lr(torch::optim::Optimizer& optimizer,
                                           const SequentialLrOptions& options);

/// All at once, each on the rates that the one before it left. `schedulers` as for `sequential_lr`,
/// and sequences and chains may be among them.
struct ChainedSchedulerOptions {
  /// At least one; they are not stepped elsewhere.
  std::vector<std::shared_ptr<LrScheduler>> schedulers{};
};
std::unique_ptr<LrScheduler> chained_scheduler(torch::optim::Optimizer& optimizer,
                                               const ChainedSchedulerOptions& options);

}  // namespace muster
