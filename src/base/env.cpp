#include <muster/base/check.h>
#include <muster/base/env.h>

#include <charconv>
#include <cstdlib>

namespace muster {

std::optional<std::string> env_text(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets one
  if (text == nullptr || *text == '\0') {
    return std::nullopt;
  }
  return text;
}

std::optional<int64_t> env_integer(const char* name, int64_t lowest) {
  const auto text = env_text(name);
  if (!text) {
    return std::nullopt;
  }
  int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  check(error == std::errc{} && stop == end && number >= lowest,
        "the environment variable {} must be a whole number of at least {}, but it is '{}'", name,
        lowest, *text);
  return number;
}

}  // namespace muster
