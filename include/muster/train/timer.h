#pragma once

#include <muster/train/callback.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace muster {

/// Names are Lightning's.
struct TimerOptions {
  enum class Interval { step, epoch };

  /// The longest a training may last, "DD:HH:MM:SS"; "": no limit, or `seconds`.
  std::string duration{};
  /// The same in seconds; none: no limit, or `duration`.
  std::optional<double> seconds{};
  /// Whether it looks at the clock after each optimizer step or at the end of each epoch.
  Interval interval = Interval::step;
};
constexpr auto enum_names(TimerOptions::Interval /*unused*/) {
  using Interval = TimerOptions::Interval;
  return std::array{std::pair{"step", Interval::step}, std::pair{"epoch", Interval::epoch}};
}

/// Measures the time of a training, and ends it when that is up; a resumed one goes on with what is
/// left. A step that is under way ends first.
class Timer final : public Callback {
 public:
  /// Error of kind `usage` for a duration that cannot be read or is negative, or two of them.
  explicit Timer(const TimerOptions& options = {});

  /// Seconds of training, those before a resume included.
  [[nodiscard]] double time_elapsed() const;
  /// Seconds left, less than 0 when the time is up; nothing without a limit.
  [[nodiscard]] std::optional<double> time_remaining() const;

  void on_start(const Progress& progress) override;
  void on_batch_end(const Progress& progress) override;
  void on_epoch_end(const Progress& progress, const Report& report) override;
  void on_end(const Progress& progress) override;
  [[nodiscard]] std::string state_key() const override { return "Timer"; }
  [[nodiscard]] Value state() const override;
  void load_state(const Value& state) override;

 private:
  using Clock = std::chrono::steady_clock;
  void stop_when_up(Training& training) const;

  std::optional<double> limit_{};
  TimerOptions::Interval interval_;
  double before_ = 0.0;
  bool loaded_ = false;
  std::optional<Clock::time_point> start_{};
};

}  // namespace muster
