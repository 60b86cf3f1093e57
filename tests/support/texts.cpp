#include "support/texts.h"

#include <regex.h>

#include <array>
#include <stdexcept>

namespace muster::test {

namespace {

class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    if (regcomp(&compiled_, text.c_str(), REG_EXTENDED) != 0) {
      throw std::invalid_argument{"'" + text + "' is no regular expression"};
    }
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// The match and its first group.
  using Groups = std::array<regmatch_t, 2>;

  bool find(const char* text, Groups& groups) const {
    return regexec(&compiled_, text, groups.size(), groups.data(), 0) == 0;
  }

 private:
  regex_t compiled_{};
};

testing::AssertionResult search(const std::string& text, const std::string& pattern) {
  Pattern::Groups groups{};
  return (Pattern{pattern}.find(text.c_str(), groups) ? testing::AssertionSuccess()
                                                      : testing::AssertionFailure())
         << "'" << pattern << "' in\n"
         << text;
}

}  // namespace

testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) {
    return testing::AssertionSuccess() << "'" << part << "' is in\n" << text;
  }
  return testing::AssertionFailure() << "'" << part << "' is not in\n" << text;
}

testing::AssertionResult matches(const std::string& text, const std::string& pattern) {
  return search(text, "^(" + pattern + ")$");
}

testing::AssertionResult says(const std::string& text, const std::string& pattern) {
  return search(text, pattern);
}

std::vector<std::string> captures(const std::string& text, const std::string& pattern) {
  const Pattern compiled{pattern};
  std::vector<std::string> found;
  Pattern::Groups groups{};
  for (const char* at = text.c_str(); compiled.find(at, groups) && groups[0].rm_eo > 0;
       at += groups[0].rm_eo) {
    found.emplace_back(at + groups[1].rm_so, at + groups[1].rm_eo);
  }
  return found;
}

}  // namespace muster::test
