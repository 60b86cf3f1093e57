#pragma once

#include <muster/base/error.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// What each fuzz target defines; main.cpp does the rest.

namespace muster::fuzz {

/// Tries one input. Whatever is wrong ends the process.
void check_input(std::string_view input);

/// What a corpus begins with: inputs that get far, or none.
std::vector<std::string> seeds();

inline void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "fuzz target: %s\n", what);
    std::abort();
  }
}

/// What `call` gives, or nothing when it throws an Error of that kind. Others end the process.
template <typename Call>
std::optional<std::invoke_result_t<Call>> unless_refused(ErrorKind kind, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.kind() != kind) {
      std::fprintf(stderr, "fuzz target: an error of another kind: %s\n", error.what());
      std::abort();
    }
    return std::nullopt;
  }
}

}  // namespace muster::fuzz
