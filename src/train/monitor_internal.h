#pragma once

#include <muster/train/callback.h>

#include <string>
#include <string_view>

namespace muster {

/// Error of kind `usage` of the callback `who` when nothing has reported `monitor`; it lists the
/// names that there are, the nearest one first.
void check_reported(const Training& training, const std::string& monitor, std::string_view who);

/// Whether the report has a value under `name`, or that no sample contributed to one.
bool names(const Report& report, std::string_view name);

}  // namespace muster
