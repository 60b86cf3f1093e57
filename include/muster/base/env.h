#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// The environment variable, or nothing when it is unset or empty.
std::optional<std::string> env_text(const char* name);

/// The environment variable as a whole number of at least `lowest`. Error of kind `usage` that
/// names the variable and its content when it is something else.
std::optional<int64_t> env_integer(const char* name, int64_t lowest = 0);

}  // namespace muster
