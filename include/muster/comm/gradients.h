#pragma once

#include <muster/comm/group.h>

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace muster {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct ReducerOptions {
  /// Numbers that each rank tells the others with every `reduce`.
  size_t notes = 0;
  /// Bytes of gradients that travel together; of the first ones, and of the others.
  int64_t first_bucket_bytes = int64_t{1} << 20U;
  int64_t bucket_bytes = int64_t{25} << 20U;
  /// Parameters may be left out of a loss; costs a walk over the graph and a further collective.
  bool find_unused_parameters = false;
};

/// Brings the gradients of all ranks together while backward runs. One thread; every rank calls the
/// same in the same order. Errors: `peer_lost` when a rank is gone. After an exception nothing but
/// the destructor may be called; it never waits.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  /// Copies rank 0's values into `tensors`, which have the same shapes and types on all ranks.
  virtual void broadcast(const std::vector<at::Tensor>& tensors) = 0;

  /// Before the forward whose loss goes to `reduce`.
  virtual void prepare_for_forward() = 0;

  /// Runs backward from `loss` with `gradient` as its own gradient (undefined: 1). Afterwards the
  /// gradient of each parameter is the sum over the ranks divided by their number, of this backward
  /// and whatever gradients were there before; equal on all ranks to the bit. An undefined `loss`
  /// adds nothing and runs nothing.
  ///
  /// Returns the notes of all ranks in rank order, valid until the next call. They travel in a type
  /// of the parameters, float32 or float64: with float32 an integer below 2^22 comes back exact
  /// when rounded, other numbers within 2^-23 of themselves.
  ///
  /// Error of kind `user` on all ranks, that names rank and parameters, when a loss does not depend
  /// on all of them; with `find_unused_parameters` a parameter that no rank used keeps its
  /// gradient.
  virtual std::span<const double> reduce(const at::Tensor& loss, const at::Tensor& gradient,
                                         std::span<const double> notes) = 0;
};

/// Over c10d::Reducer, on a process group of its own, where the group stands on c10d; elsewhere
/// over the group's transport, after backward. The bucket layout is fixed by the order and sizes of
/// `parameters`, which all require a gradient, are distinct and alike on all ranks. All ranks call
/// it, at the same place of the group.
std::unique_ptr<GradientReducer> make_gradient_reducer(Group& group, NamedTensors parameters,
                                                       const ReducerOptions& options);

/// What a backward from `loss` runs through: the nodes of its graph, each once.
std::unordered_set<const torch::autograd::Node*> nodes_behind(const at::Tensor& loss);

}  // namespace muster
