#include "src/track/json_members_internal.h"

#include <muster/base/check.h>

#include <nlohmann/json.hpp>

namespace muster::track {

namespace {

constexpr std::string_view blanks = " \t\r\n";

/// The end of the JSON value or name that begins at `at`, in a text that is known to be JSON.
size_t end_of_value(std::string_view text, size_t at) {
  int depth = 0;
  bool in_text = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_text) {
      if (c == '\\') {
        ++at;
      }
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) {
        return at;
      }
      --depth;
    } else if (depth == 0 && (c == ',' || c == ':')) {
      return at;
    }
  }
  return at;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

std::vector<JsonMember> json_members(std::string_view text, std::string_view what) {
  text = trimmed(text);
  // nlohmann's parser takes a zero byte for the end of the text.
  const bool is_object = text.starts_with('{') && text.find('\0') == std::string_view::npos &&
                         nlohmann::json::accept(text);
  check(is_object, ErrorKind::data, "{} is not a JSON object", what);
  std::vector<JsonMember> members;
  size_t at = 1;
  while (at < text.size()) {
    const size_t colon = end_of_value(text, at);
    const auto name = trimmed(text.substr(at, colon - at));
    if (name.empty()) {
      break;  // the end of an object without members
    }
    const size_t end = end_of_value(text, colon + 1);
    members.push_back({nlohmann::json::parse(name).get<std::string>(),
                       trimmed(text.substr(colon + 1, end - colon - 1))});
    at = end + 1;
  }
  return members;
}

std::string json_on_one_line(std::string_view json) {
  std::string out;
  bool in_text = false;
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (!in_text && blanks.find(c) != std::string_view::npos) {
      continue;
    }
    out += c;
    if (in_text && c == '\\') {
      out += json[++at];
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == ',' || c == ':')) {
      out += ' ';
    }
  }
  return out;
}

}  // namespace muster::track
