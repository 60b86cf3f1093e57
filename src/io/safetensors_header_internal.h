#pragma once

#include <muster/io/safetensors.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One tensor as a safetensors header describes it.
struct TensorEntry {
  std::string name{};
  std::string dtype{};
  std::vector<int64_t> shape{};
  std::vector<int64_t>
      offsets{};  ///< begin and end of its bytes, counted from the end of the header
};

struct SafeTensorsHeader {
  std::vector<TensorEntry> tensors{};
  NamedTexts metadata{};
};

/// Reads the header's JSON. Error of kind `data` that begins with `file` for whatever the format
/// does not allow in it; that types, shapes and offsets make sense together is not looked at.
SafeTensorsHeader parse_safetensors_header(std::string_view json, std::string_view file);

}  // namespace muster
