#pragma once

#include <muster/value/convert.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace muster {

/// How much of a loader an epoch takes: a whole number of global batches, or a fraction of them
/// (Lightning's rule: 1 is one batch, 1.0 is all).
class BatchLimit {
 public:
  /// All batches.
  BatchLimit() = default;
  BatchLimit(int batches) : limit_{int64_t{batches}} {}  // NOLINT(google-explicit-constructor)
  BatchLimit(int64_t batches) : limit_{batches} {}       // NOLINT(google-explicit-constructor)
  BatchLimit(double fraction) : limit_{fraction} {}      // NOLINT(google-explicit-constructor)

  /// How many of `batches` an epoch takes; `name` is for the message when the limit is negative, a
  /// fraction above 1, or a fraction that comes to no batch at all (Error of kind `usage`).
  [[nodiscard]] int64_t of(int64_t batches, std::string_view name) const;
  [[nodiscard]] const std::variant<int64_t, double>& value() const { return limit_; }

 private:
  std::variant<int64_t, double> limit_ = 1.0;
};

template <>
struct ValueConverter<BatchLimit> {
  static Value write(const BatchLimit& limit);
  static void read(const Value& value, BatchLimit& target, const ValuePath& path);
};

/// Compute threads of a rank.
struct ThreadCount {
  /// 0 is "auto": the rank's share of the cores.
  int64_t count = 1;
};

template <>
struct ValueConverter<ThreadCount> {
  static Value write(const ThreadCount& threads);
  static void read(const Value& value, ThreadCount& target, const ValuePath& path);
};

/// Options of a Trainer; names are Lightning's where it has one.
struct TrainerOptions {
  /// Processes that share the work. More than 1 starts them (`muster::run`), unless a launcher has.
  int64_t devices = 1;
  /// Compute threads of a rank: a number, or "auto" for its share of the cores. A model's sums
  /// depend on it, so the default is one whatever the number of ranks.
  ThreadCount threads{};
  /// Seed of shuffling and augmentation (of loaders without a seed of their own), of the module's
  /// first weights and of torch's generator.
  int64_t seed = 0;
  /// Where everything is written; "" is runs/PROGRAM.
  std::string run_dir{};
  /// CSV, W&B (offline) and TensorBoard; false: none of them.
  bool logger = true;
  /// W&B's project.
  std::string project = "muster";
  /// Progress on stderr: a bar on a terminal, lines elsewhere.
  bool enable_progress_bar = true;
  /// Global batches of a validation epoch, whatever the number of ranks.
  BatchLimit limit_val_batches{};
  /// Global batches of a test epoch.
  BatchLimit limit_test_batches{};
  /// Global batches of a prediction.
  BatchLimit limit_predict_batches{};
  /// Seconds a rank waits for another in a collective before it gives up.
  double timeout = 600.0;
};

/// Error of kind `usage` that names the first option out of its range.
void check_options(const TrainerOptions& options);

}  // namespace muster
