#pragma once

#include <muster/value/convert.h>

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace muster {

/// Types that a module computes in.
enum class Precision {
  f32_true,    ///< everything as the module has it: float32
  f64_true,    ///< parameters, buffers and the floating tensors of batches in float64
  bf16_mixed,  ///< autocast to bfloat16 in steps; parameters stay float32
  f16_mixed,   ///< autocast to float16, and a gradient scaler
};
constexpr auto enum_names(Precision /*unused*/) {
  return std::array{
      std::pair{"32-true", Precision::f32_true}, std::pair{"64-true", Precision::f64_true},
      std::pair{"bf16-mixed", Precision::bf16_mixed}, std::pair{"16-mixed", Precision::f16_mixed}};
}

/// Written by name; read too where it is one of Lightning's short forms 32, 64, 16 and "bf16".
template <>
struct ValueConverter<Precision> {
  static Value write(Precision precision);
  static void read(const Value& value, Precision& target, const ValuePath& path);
};

/// While it lives, operations of this thread on tensors of the device's kind compute in the lower
/// type where that is safe, as under Python's torch.autocast; nothing for a true precision. Guards
/// nest. At the end of the outermost one the converted weights are forgotten, so an optimizer may
/// step between two guards, not within one.
///
/// Error of kind `usage` for a mixed precision on another device than the CPU or CUDA.
class AutocastGuard {
 public:
  AutocastGuard(Precision precision, at::Device device) {
    if (precision == Precision::bf16_mixed || precision == Precision::f16_mixed) {
      enter(precision, device.type());
    }
  }
  ~AutocastGuard() {
    if (before_) leave();
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  struct Before {
    at::DeviceType device;
    bool enabled;
    at::ScalarType dtype;
    bool cache_enabled;
  };

  void enter(Precision precision, at::DeviceType device);
  void leave() noexcept;

  std::optional<Before> before_;
};

struct GradScalerOptions {
  double init_scale = 65536.0;     ///< the first factor, above 0
  double growth_factor = 2.0;      ///< of the factor after `growth_interval` good steps, above 1
  double backoff_factor = 0.5;     ///< of the factor after an infinite gradient, in (0, 1)
  int64_t growth_interval = 2000;  ///< good steps in a row before the factor grows, at least 1
};

/// Keeps the small gradients of float16 from becoming 0: the loss is multiplied by a factor before
/// backward, the gradients are divided by it before the optimizer's step, and the factor is as high
/// as it can be without infinite gradients. Each factor is that of Python's torch.amp.GradScaler.
/// Ranks whose gradients are equal agree on it. One thread.
class GradScaler {
 public:
  /// Error of kind `usage` for options out of their range.
  explicit GradScaler(const GradScalerOptions& options = {});

  [[nodiscard]] double factor() const { return factor_; }
  /// The loss times the factor: what backward starts from.
  [[nodiscard]] at::Tensor scale(const at::Tensor& loss) const;
  /// Divides the gradients by the factor, in place; true when one of them held a number that is not
  /// finite, so that the optimizer must not step. Parameters without a gradient are passed over.
  /// Once a step; Error of kind `usage` for a gradient of float16.
  [[nodiscard]] bool unscale(std::span<const at::Tensor> parameters) const;
  /// To be called once a step, with what `unscale` found on any rank.
  void update(bool found_inf);

  /// The factor and how long it has been good; the options are not in it.
  [[nodiscard]] Value state() const;
  /// Goes on from there. Error of kind `data` for something else.
  void load_state(const Value& state);

 private:
  GradScalerOptions options_;
  float factor_;  // Python's is a float32 tensor
  int64_t good_steps_ = 0;
};

}  // namespace muster
