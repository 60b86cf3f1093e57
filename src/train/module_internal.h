#pragma once

#include <muster/io/safetensors.h>
#include <muster/train/precision.h>

namespace torch::nn {
class Module;
}

namespace muster {

/// By the names of Python's `state_dict`; they share memory with the module.
NamedTensors parameters_of(const torch::nn::Module& module);
NamedTensors buffers_of(const torch::nn::Module& module);

class ModuleBase;

/// Puts parameters and buffers into the types of a precision.
void convert(ModuleBase& module, Precision precision);

}  // namespace muster
