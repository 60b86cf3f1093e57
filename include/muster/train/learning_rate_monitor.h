#pragma once

#include <muster/train/callback.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace muster {

/// Names are Lightning's.
struct LearningRateMonitorOptions {
  enum class Interval { step, epoch };

  /// With each row of values, or at the start of each epoch; none: both.
  std::optional<Interval> logging_interval{};
  /// Logs momenta (of Adam and AdamW the first beta) too; 0 for an optimizer without one.
  bool log_momentum = false;
};
constexpr auto enum_names(LearningRateMonitorOptions::Interval /*unused*/) {
  using Interval = LearningRateMonitorOptions::Interval;
  return std::array{std::pair{"step", Interval::step}, std::pair{"epoch", Interval::epoch}};
}

/// Logs the learning rate that a step uses as `lr-SGD`, by the optimizer's class, or `lr-SGD/pg1`,
/// `lr-SGD/pg2`, ... where it has several parameter groups; momenta with the ending `-momentum`.
class LearningRateMonitor final : public Callback {
 public:
  explicit LearningRateMonitor(const LearningRateMonitorOptions& options = {});

  void on_epoch_start(const Progress& progress) override;
  void on_before_optimizer_step(const Progress& progress) override;

 private:
  using Interval = LearningRateMonitorOptions::Interval;
  [[nodiscard]] bool logs_at(Interval interval) const;
  void log(Training& training) const;

  LearningRateMonitorOptions options_;
};

}  // namespace muster
