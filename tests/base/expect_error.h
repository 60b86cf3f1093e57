#pragma once

#include <muster/base/error.h>

#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace muster::test {

/// The Error that `action` throws; a test failure when it throws none.
template <typename Action>
Error error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return {ErrorKind::user, ""};
}

/// Whether `text` contains `part`.
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace muster::test
