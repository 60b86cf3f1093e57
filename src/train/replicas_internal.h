#pragma once

#include <muster/comm/gradients.h>
#include <muster/comm/group.h>

#include <cstdint>
#include <string>

namespace muster {

/// Compares the parameters of all ranks, to the bit: an Error of kind `mismatch` on all of them
/// that names the first rank and parameter that differ from rank 0's. All ranks; a gather of 32
/// bytes a parameter, whose bytes are read once.
void check_equal_parameters(Group& group, const NamedTensors& parameters, int64_t global_step);

/// The same for the checkpoint that all ranks have read, by its manifest. All ranks; one small
/// gather.
void check_same_checkpoint(Group& group, const std::string& path);

}  // namespace muster
