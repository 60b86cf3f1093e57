#pragma once

#include <muster/comm/gradients.h>

#include <memory>
#include <string>
#include <vector>

namespace muster::detail {

/// For a group of make_c10d_group.
std::unique_ptr<GradientReducer> make_c10d_reducer(Group& group, NamedTensors parameters,
                                                   const ReducerOptions& options);

/// The parameters, by index, whose gradients a backward from `loss` does not compute. It is correct
/// after that backward too.
std::vector<size_t> unreached(const at::Tensor& loss, const NamedTensors& parameters);

/// Throws the Error about unused parameters, the same on all ranks; each says which are `unused` on
/// it. All ranks call it.
[[noreturn]] void fail_unused(Transport& transport, const NamedTensors& parameters,
                              const std::vector<size_t>& unused);

}  // namespace muster::detail
