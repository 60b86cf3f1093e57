#pragma once

#include <muster/data/share.h>
#include <muster/train/step.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace muster {

class ModuleBase;

/// What a look at a rank's next rounds has found.
struct Ahead {
  int64_t rounds = 0;  ///< that its loader has
  int64_t filled = 0;  ///< of these, with samples
};

/// Training of a module on a loader with the types of its data hidden, so that the loop is compiled
/// once. The loop calls; a pass only forwards to the module's hooks and to the loader.
class TrainPass {
 public:
  TrainPass() = default;
  TrainPass(const TrainPass&) = delete;
  TrainPass& operator=(const TrainPass&) = delete;
  virtual ~TrainPass() = default;

  [[nodiscard]] virtual ModuleBase& module() = 0;

  /// Global batches of an epoch; nothing where only its end tells.
  [[nodiscard]] virtual std::optional<int64_t> batches() const = 0;
  /// Of the loader's options.
  [[nodiscard]] virtual int64_t batch_size() const = 0;
  /// Whether each rank has data of its own.
  [[nodiscard]] virtual bool is_sharded() const = 0;
  /// Whether `samples_in` holds: otherwise a step's ranks tell one another what they have.
  [[nodiscard]] virtual bool has_known_counts() const = 0;
  /// Samples of global batch `k` of the epoch that is open.
  [[nodiscard]] virtual int64_t samples_in(int64_t k) const = 0;

  /// Starts loading this rank's share of an epoch. `dtype` is what the floating tensors of a batch
  /// become; none: they stay as they are.
  virtual void open(int64_t epoch, const Share& share,
                    const std::optional<at::ScalarType>& dtype) = 0;
  /// Takes this rank's next batch; false when there is none left. Without known counts it may have
  /// no samples.
  virtual bool next() = 0;
  /// Waits for the next `rounds` batches of this rank, which stay to be taken.
  virtual Ahead look_ahead(int64_t rounds) = 0;
  /// Of the batch that `next` took.
  [[nodiscard]] virtual int64_t batch_idx() const = 0;
  [[nodiscard]] virtual const std::vector<int64_t>& indices() const = 0;

  /// Transfer and batch start of the batch that `next` took.
  virtual void batch_start(Step& step) = 0;
  virtual at::Tensor training_step(Step& step) = 0;
  virtual void batch_end(const at::Tensor& loss, Step& step) = 0;
};

}  // namespace muster
