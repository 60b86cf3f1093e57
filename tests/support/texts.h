#pragma once

#include <gtest/gtest.h>
#include <regex.h>

#include <string>

namespace muster::test {

/// Whether `text` contains `part`; a failed EXPECT_TRUE shows both.
inline testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) {
    return testing::AssertionSuccess() << "'" << part << "' is in\n" << text;
  }
  return testing::AssertionFailure() << "'" << part << "' is not in\n" << text;
}

/// Whether the whole `text` matches the extended regular expression (POSIX; std::regex of GCC 12
/// does not compile without warnings under sanitizers).
inline testing::AssertionResult matches(const std::string& text, const std::string& pattern) {
  regex_t compiled{};
  if (regcomp(&compiled, ("^(" + pattern + ")$").c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return testing::AssertionFailure() << "'" << pattern << "' is no regular expression";
  }
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return (found ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "'" << pattern << "' against\n"
         << text;
}

}  // namespace muster::test
