#pragma once

#include <muster/train/callback.h>
#include <muster/train/monitor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// Names are Lightning's.
struct EarlyStoppingOptions {
  /// The value of training or validation that is followed; must be given.
  std::string monitor{};
  /// Whether a better value is lower or higher.
  MonitorMode mode = MonitorMode::min;
  /// Checks in a row without a better value that end the training.
  int64_t patience = 3;
  /// By more than this a value must be better, at least 0.
  double min_delta = 0.0;
  /// Ends the training when the value is NaN or infinite.
  bool check_finite = true;
  /// Ends it when the value is better than this.
  std::optional<double> stopping_threshold{};
  /// Ends it when the value is worse than this.
  std::optional<double> divergence_threshold{};
  /// Checks at the end of each training epoch, not of each validation.
  bool check_on_train_epoch_end = false;
  /// A monitor that neither training nor validation has ever logged is an error once an epoch with
  /// a validation is over (in any case with check_on_train_epoch_end); else it is passed over.
  bool strict = true;
};

/// Ends a training whose monitored value does not get better. Checks the value of each validation,
/// or of each training epoch where only training logs it. The reason goes to `Training::stop`.
class EarlyStopping final : public Callback {
 public:
  /// Error of kind `usage` for an option out of its range.
  explicit EarlyStopping(EarlyStoppingOptions options);

  /// The epoch in which it ended the training; nothing while it has not.
  [[nodiscard]] std::optional<int64_t> stopped_epoch() const { return state_.stopped_epoch; }
  /// Nothing before the first check.
  [[nodiscard]] std::optional<double> best_score() const { return state_.best_score; }
  /// Checks in a row without a better value.
  [[nodiscard]] int64_t wait_count() const { return state_.wait_count; }

  void on_start(const Progress& progress) override;
  void on_epoch_end(const Progress& progress, const Report& report) override;
  [[nodiscard]] std::string state_key() const override;
  [[nodiscard]] Value state() const override;
  void load_state(const Value& state) override;

 private:
  struct State {
    int64_t wait_count = 0;
    std::optional<double> best_score{};
    std::optional<int64_t> stopped_epoch{};
  };

  void check_value(const Progress& progress, double value);
  /// Why to stop at this value; "": it goes on.
  std::string reason_at(double value);

  EarlyStoppingOptions options_;
  State state_{};
  bool loaded_ = false;
  bool validated_ = false;
  bool validation_has_it_ = false;
};

}  // namespace muster
