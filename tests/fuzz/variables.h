#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace muster::fuzz {

/// Sets the variables that `lines` says, "a=1\n...", and unsets the others of `names`: a line's
/// first letter tells which one it is, counted from `first`. The second letter may be any.
template <size_t count>
void set_variables(const std::array<const char*, count>& names, char first,
                   std::string_view lines) {
  for (const char* name : names) {
    unsetenv(name);
  }
  while (lines.size() >= 2) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const auto line = lines.substr(0, end);
    const auto which = static_cast<size_t>(line.empty() ? -1 : line[0] - first);
    if (line.size() >= 2 && which < names.size()) {
      setenv(names[which], std::string{line.substr(2)}.c_str(), 1);
    }
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace muster::fuzz
