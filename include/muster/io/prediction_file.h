#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// The name of the file of one sample's prediction: the global index in six digits (more where it
/// has more), a dash, the name with every byte outside [A-Za-z0-9._-] as %XX, and the extension:
/// "000012-name.png". At most 200 characters; no two indices share a name. Error of kind `usage`
/// for an index below 0.
std::string prediction_file_name(int64_t index, std::string_view name,
                                 std::string_view extension = ".png");

}  // namespace muster
