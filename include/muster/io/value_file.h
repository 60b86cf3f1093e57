#pragma once

#include <muster/io/safetensors.h>
#include <muster/value/value.h>

#include <string>
#include <string_view>

namespace muster {

/// A Value as the bytes of a safetensors file. Each tensor is there under the keys that lead to it,
/// joined by dots ("groups.0.parameters.1.exp_avg"); every node of the tree has a text in the
/// metadata under such a path ("." for the root): "dict:2" and "list:3" for what follows below,
/// "tensor", "null", "bool:true", "int:-7", "float:0.1", "string:text".
///
/// A key's dots and percent signs are written as %XX, an empty one as "%"; texts that are not UTF-8
/// are "bytes:" with %XX. Tensors are written dense, from any device. Error of kind `usage` for
/// what `safetensors_bytes` does not take, more than 64 levels, or a dict with a repeated key.
std::string value_file_bytes(const Value& value);

/// The Value that such a file holds, `identical` to the one that was written; its tensors are those
/// of `file`. Error of kind `data` that begins with `name` for any other file.
Value value_from_file(const SafeTensors& file, std::string_view name = "the file");

}  // namespace muster
