#pragma once

#include <fmt/base.h>

#include <string>

namespace muster {

/// Formats without pulling the formatting code into the caller; `args` are those of
/// `fmt::make_format_args`.
std::string vformat(fmt::string_view pattern, fmt::format_args args);

/// fmt::format for numbers, texts, characters and bools. The pattern is checked when compiled.
template <typename... Args>
std::string format(fmt::format_string<Args...> pattern, Args&&... args) {
  return vformat(pattern, fmt::make_format_args(args...));
}

}  // namespace muster
