#pragma once

#include <muster/comm/gradients.h>
#include <muster/comm/group.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace muster {

struct DdpOptions {
  /// Bytes of gradients that travel together.
  int64_t bucket_bytes = int64_t{25} << 20U;
  /// Of the first bucket, which goes while most of backward still runs.
  int64_t first_bucket_bytes = int64_t{1} << 20U;
  /// Whether parameters may be left out of a loss; otherwise that is an error that names them.
  bool find_unused_parameters = false;
};

/// What every rank tells the others within a step, riding in the bucket of the gradients.
struct StepFlags {
  int64_t samples = 0;      ///< of this rank's batches since the last step, below 2^22
  double loss_sum = 0.0;    ///< sum over those samples of the loss
  bool stop = false;        ///< a signal asked this rank to stop
  bool save = false;        ///< a signal asked this rank to save
  bool non_finite = false;  ///< this rank's loss is not finite
  bool more = false;        ///< this rank has batches after this step
  bool lacks = false;       ///< this rank has fewer batches for the next step than it may take
};

/// The same flags of all ranks together: sums in rank order, and whether any rank said so. All
/// ranks get the same. The sum of samples is exact; `loss_sum` is as exact as the parameters' type
/// (each rank's part within 2^-23 of itself for float32).
struct AgreedFlags {
  int64_t samples = 0;
  double loss_sum = 0.0;
  bool stop = false;
  bool save = false;
  bool non_finite = false;
  int non_finite_rank = -1;  ///< the lowest one that said so
  bool more = false;
  bool lacks = false;
};

/// Exact data-parallel gradients: after the backward of a step's last micro-batch each parameter's
/// gradient is that of the mean over all samples of all ranks' micro-batches, whatever their sizes,
/// and equal on all ranks to the bit. A rank without a batch takes part with zeros and runs no
/// forward. On a group of one it only scales.
///
/// Processes use c10d::Reducer, on a process group of its own, and no other collective; a group of
/// threads its transport. The order of additions is fixed by the parameters' order and sizes.
///
/// One thread, the group's owner. Errors of `backward`: `peer_lost` when a rank is gone; `user` on
/// all ranks when the loss of one leaves out parameters. After an exception nothing but the
/// destructor may be called; it never waits.
class Ddp {
 public:
  /// Makes all ranks' parameters and buffers those of rank 0, after checking that names, shapes,
  /// types and layouts agree (Error of kind `usage` on all ranks that names the first difference).
  /// All ranks call it, at the same place of the group. Parameters that require no gradient are
  /// never reduced; one that is listed twice counts once. The tensors must outlive it.
  Ddp(Group& group, const NamedTensors& parameters, NamedTensors buffers,
      const DdpOptions& options = {});
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  /// Copies rank 0's buffers to all ranks, as Python's DDP does before a forward. All ranks call
  /// it, those without a batch too.
  void broadcast_buffers();

  /// To be called before the forward of a step's last micro-batch (the one that synchronises).
  void prepare_for_forward();

  /// Backward of one micro-batch. `loss` is the mean over `samples` samples of this rank, one
  /// number; `step_samples` are those of all ranks and micro-batches of this step, or nothing on
  /// every rank where no rank knows them beforehand: then they are the sum of what the flags say.
  /// With `last` the gradients of all ranks come together and the agreed flags are returned; before
  /// that they only add up here (no_sync), and the result says nothing. Gradients are not set to
  /// zero here; those of a step without samples are zero.
  AgreedFlags backward(const at::Tensor& loss, int64_t samples, std::optional<int64_t> step_samples,
                       bool last, const StepFlags& flags);
  /// The same for a rank without a batch in the step's last micro-batch.
  AgreedFlags backward_without_batch(std::optional<int64_t> step_samples, const StepFlags& flags);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
