#include "file_pattern_internal.h"

#include <muster/base/check.h>

#include <algorithm>
#include <exception>

namespace muster {

namespace {

bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '=' || c == '-';
}

/// A width or precision of more than three digits: a number would take memory without bound.
bool has_long_number(std::string_view format) {
  size_t digits = 0;
  return std::any_of(format.begin(), format.end(), [&](char c) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    return digits > 3;
  });
}

}  // namespace

FilePattern::FilePattern(std::string_view pattern, bool insert_names) {
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const size_t open = rest.find_first_of("{}");
    Part part{.text = std::string{rest.substr(0, open)}};
    if (open == std::string_view::npos) {
      parts_.push_back(std::move(part));
      break;
    }
    const size_t close = rest.find_first_of("{}", open + 1);
    check(rest[open] == '{' && close != std::string_view::npos && rest[close] == '}',
          "filename: the braces of {} do not match; a field is {{epoch}} or {{val/loss:.3f}}",
          pattern);
    const std::string_view field = rest.substr(open + 1, close - open - 1);
    const size_t colon = field.find(':');
    part.name = field.substr(0, colon);
    check(!part.name.empty(), "filename: a field of {} has no name", pattern);
    check(!has_long_number(field.substr(std::min(colon, field.size()))),
          "filename: the width or precision of a field of {} has more than three digits", pattern);
    part.format = "{:" + std::string{colon < field.size() ? field.substr(colon + 1) : ""} + "}";
    if (insert_names) {
      part.text += part.name + "=";
    }
    parts_.push_back(std::move(part));
    rest.remove_prefix(close + 1);
  }
  std::string example;
  try {
    example = name(0, 0, [](std::string_view) { return 0.0; });
  } catch (const std::exception& error) {
    fail(ErrorKind::usage, "filename: {} has a format that its number does not take: {}", pattern,
         error.what());
  }
  check(!example.empty() && example != "last" && example != "best",
        "filename: expected a name for the checkpoints, found \"{}\"; last and best are links",
        pattern);
}

std::string FilePattern::name(int64_t epoch, int64_t step, const Metric& metric) const {
  std::string out;
  for (const auto& part : parts_) {
    out += part.text;
    if (part.name == "epoch" || part.name == "step") {
      const int64_t number = part.name == "epoch" ? epoch : step;
      out += vformat(part.format, fmt::make_format_args(number));
    } else if (!part.name.empty()) {
      const double number = metric(part.name).value_or(0.0);
      out += vformat(part.format, fmt::make_format_args(number));
    }
  }
  for (char& c : out) {
    if (!is_allowed(c)) {
      c = '_';
    }
  }
  if (out.starts_with('.')) {
    out.front() = '_';
  }
  return out;
}

}  // namespace muster
