#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::test {

// Patterns are extended regular expressions of POSIX: std::regex of GCC 12 does not compile without
// warnings under sanitizers. A failed EXPECT_TRUE shows the pattern and the text.

/// Whether `text` contains `part`.
testing::AssertionResult has(const std::string& text, const std::string& part);

/// Whether the whole `text` matches `pattern`.
testing::AssertionResult matches(const std::string& text, const std::string& pattern);

/// Whether some part of `text` matches `pattern`.
testing::AssertionResult says(const std::string& text, const std::string& pattern);

/// The first group of `pattern` in each of its matches in `text`, from left to right.
std::vector<std::string> captures(const std::string& text, const std::string& pattern);

}  // namespace muster::test
