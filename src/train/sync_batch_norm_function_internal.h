#pragma once

#include <muster/comm/group.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace muster {

/// Of each channel, over the batches of all ranks that are present: float64, [C].
struct ChannelStatistics {
  int64_t count = 0;  ///< values of a channel
  at::Tensor mean{};
  at::Tensor squares{};    ///< sum of the squared differences from the mean
  int64_t first_rank = 0;  ///< the lowest one that is present
};

struct NormalizedBatch {
  at::Tensor output{};
  ChannelStatistics statistics{};
  bool has_backward = false;  ///< whether a backward of `output` gathers
};

/// Batch normalization of `x`, [N, C, ...] on the CPU, by the statistics of all ranks' `x`: mean
/// and squares of each rank in float64, put together in rank order by the formulas of Chan, Golub
/// and LeVeque (1979). One collective at the group's place; one more in the backward, where
/// gradients of `x` are those of the sum of all ranks' losses, and those of `weight` and `bias`
/// (each [C] or undefined) this rank's part of them. All ranks that have a batch call it for the
/// same layers in the same order, and run backward in the same order.
///
/// Errors: `mismatch` on all present ranks when the layers, their channels or whether a backward
/// follows differ; `user` when all ranks together have one value a channel; `usage` for tensors of
/// another device, in a backward on another thread than the group's owner (which is that of tensors
/// on a GPU), and in a backward that is to be differentiated.
NormalizedBatch synced_batch_norm(Group& group, const std::string& layer, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& bias, double eps);

/// Collectives that a backward from `loss` will call.
int64_t backward_gathers(const at::Tensor& loss);

/// Takes part, with nothing to give, in as many collectives of the other ranks' backward.
void attend_backward_gathers(Group& group, int64_t times);

}  // namespace muster
