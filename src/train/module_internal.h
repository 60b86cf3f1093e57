#pragma once

#include <muster/io/safetensors.h>
#include <muster/train/precision.h>

#include <string>

namespace torch::nn {
class Module;
}

namespace muster {

/// By the names of Python's `state_dict`; they share memory with the module.
NamedTensors parameters_of(const torch::nn::Module& module);
NamedTensors buffers_of(const torch::nn::Module& module);

class ModuleBase;

/// As in trainer.h.
void load_weights(ModuleBase& module, const std::string& path);

/// Puts parameters and buffers into the types of a precision.
void convert(ModuleBase& module, Precision precision);

}  // namespace muster
