#pragma once

#include <muster/io/safetensors.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// Copies the values of a file into the tensors that are given: a model's parameters and buffers by
/// their names as Python's `state_dict` has them. The tensors keep their memory, device, type and
/// place in the graph.
///
/// `path` is a safetensors file, or a folder that holds `model.safetensors`, which must be as a
/// `manifest.json` beside it says. Names must be the same
/// on both sides, and so must shapes. A floating type is converted to another; the names of tensors
/// where that happened are returned. Any other difference of types is an error. Nothing is copied
/// when anything is wrong.
///
/// Error of kind `usage` when there is no such file, of kind `data` that names the path and what
/// differs.
std::vector<std::string> load_weights(const std::filesystem::path& path,
                                      std::span<const std::pair<std::string, at::Tensor>> targets);

/// The same with tensors that were read already, from a file called `file` in messages.
std::vector<std::string> copy_weights(NamedTensors from,
                                      std::span<const std::pair<std::string, at::Tensor>> targets,
                                      std::string_view file);

}  // namespace muster
