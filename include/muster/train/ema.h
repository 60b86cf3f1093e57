#pragma once

#include <muster/train/callback.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

/// Names are those of Lightning's EMAWeightAveraging.
struct EMAOptions {
  /// Part of the average that stays when a step is added, in [0, 1].
  double decay = 0.999;
  /// Steps from one update of the average to the next.
  int64_t update_every_n_steps = 1;
  /// The first step (counted from 0) after which the average may be updated.
  int64_t update_starting_at_step = 0;
  /// Whether the average has buffers too; those that are no floating-point numbers are copied.
  bool use_buffers = true;
};

/// Exponential moving average of a module's tensors: average = decay * average + (1 - decay) *
/// tensor after an optimizer step, beginning with the tensors of the first update. The module has
/// the average in validations within a training and after it, and as the model of checkpoints; the
/// weights that are trained are in the callback's state. Before the first update nothing changes.
///
/// Equal on all ranks: parameters by themselves, buffers in validations and at the end, as rank 0
/// has them. Takes the memory of the module's tensors once, and twice while it exchanges them.
class EMA final : public Callback {
 public:
  /// Error of kind `usage` for an option out of its range.
  explicit EMA(const EMAOptions& options = {});

  /// Steps that the average is made of.
  [[nodiscard]] int64_t updates() const { return updates_; }

  void on_start(const Progress& progress) override;
  void on_batch_end(const Progress& progress) override;
  void on_end(const Progress& progress) override;
  [[nodiscard]] std::string state_key() const override { return "EMA"; }
  [[nodiscard]] Value state() const override;
  void load_state(const Value& state) override;
  void on_save(NamedTensors& model) const override;

 private:
  void start(Training& training);
  void resume(const Value& state);
  /// Exchanges the average with the module's tensors.
  void exchange();
  void enter_average(Training& training);
  [[nodiscard]] bool averages() const { return updates_ > 0; }

  EMAOptions options_;
  std::vector<std::string> names_{};
  /// The module's, floating-point ones first.
  std::vector<at::Tensor> tensors_{};
  size_t floating_ = 0;
  /// The average in the order of `tensors_`, or the trained weights while the module has that.
  std::vector<at::Tensor> other_{};
  bool has_buffers_ = false;
  bool exchanged_ = false;
  int64_t updates_ = 0;
  std::optional<Value> loaded_{};
};

}  // namespace muster
