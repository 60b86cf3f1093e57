#pragma once

#include <muster/data/share.h>
#include <muster/train/step.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {

class Metric;
class ModuleBase;

/// One evaluation of a module over its loaders with their types hidden, so that the loop is
/// compiled once. The loop calls; a pass only forwards to the module's hooks of its stage and to
/// its loaders.
class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual ~Pass() = default;

  [[nodiscard]] virtual Stage stage() const = 0;
  [[nodiscard]] virtual ModuleBase& module() = 0;
  [[nodiscard]] virtual const std::vector<std::pair<std::string, Metric*>>& metrics() const = 0;
  [[nodiscard]] virtual int64_t loaders() const = 0;
  /// Global batches of a loader; nothing where only its end tells.
  [[nodiscard]] virtual std::optional<int64_t> batches(int64_t loader) const = 0;

  /// Starts loading. `dtype` is what the floating tensors of a batch become; none: they stay as
  /// they are.
  virtual void open(int64_t loader, const Share& share,
                    const std::optional<at::ScalarType>& dtype) = 0;
  /// Takes this rank's next batch that has samples; false when there is none left.
  virtual bool next() = 0;
  /// Of the batch that `next` took.
  [[nodiscard]] virtual int64_t batch_idx() const = 0;
  [[nodiscard]] virtual const std::vector<int64_t>& indices() const = 0;

  virtual void setup(Step& step) = 0;
  virtual void start(Step& step) = 0;
  virtual void epoch_start(Step& step) = 0;
  /// Transfer, batch start, step and batch end of the batch that `next` took.
  virtual void batch(Step& step) = 0;
  virtual void epoch_end(Step& step) = 0;
  virtual void end(Step& step) = 0;
  virtual void teardown(Step& step) = 0;
};

}  // namespace muster
