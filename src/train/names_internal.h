#pragma once

#include <string_view>

namespace muster {

/// Refuses a name that a logger could not take, at once and on the rank that gives it rather than
/// at the epoch's end on rank 0; `call` is who was given it.
void check_name(std::string_view call, std::string_view name);

}  // namespace muster
