#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// Tensors with their names, in an order that means something to the caller.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Texts with their names.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

/// What a safetensors file holds.
struct SafeTensors {
  NamedTensors tensors{};  ///< in the order of their bytes in the file
  NamedTexts metadata{};   ///< in the order of the file
};

/// Reads a safetensors file. Tensors lie on the CPU, contiguous, in memory that torch allocated.
/// The types are BOOL, U8..U64, I8..I64, F8_E4M3, F8_E5M2, F16, BF16, F32, F64 and C64.
///
/// The file must keep the format's rules to the letter: a header of at most 100 MB that is one JSON
/// object without repeated keys, and tensors whose bytes fill the rest of the file without a gap,
/// an overlap or a remainder. Memory is taken only for what the file really holds. Error of kind
/// `data` that names the path, and the tensor where there is one.
SafeTensors load_safetensors(const std::filesystem::path& path);

/// The same of a file's bytes; errors begin with `name`.
SafeTensors parse_safetensors(std::string_view bytes, std::string_view name);

/// The bytes of a safetensors file. Tensors of any device and strides; those of larger elements
/// come first, then by name, so that equal content gives equal bytes. Error of kind `usage` for a
/// repeated name, the reserved name
/// `__metadata__`, or a tensor of a type that the format lacks.
std::string safetensors_bytes(const NamedTensors& tensors, const NamedTexts& metadata = {});

/// Of the bytes of such a file: the SHA-256 of each tensor's bytes, in the order of the file.
/// Errors as `parse_safetensors`.
NamedTexts safetensors_digests(std::string_view bytes, std::string_view name);

/// Writes such a file whole or not at all (see `write_file_atomically`).
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const NamedTexts& metadata = {});

}  // namespace muster
