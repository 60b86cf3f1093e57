// YAML of configurations and values of the command line: what is read is written as YAML that reads
// as the same.

#include <muster/base/text.h>

#include "src/cli/yaml_internal.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <cstdint>

namespace muster::fuzz {
namespace {

int depth_of(const Value& value) {
  int deepest = 0;
  if (value.is_list()) {
    for (const auto& item : value.as_list()) {
      deepest = std::max(deepest, depth_of(item));
    }
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.as_dict()) {
      deepest = std::max(deepest, depth_of(item));
    }
  }
  return deepest + 1;
}

/// Whether a text holds a noncharacter, as U+FFFE, which YAML has no room for.
bool has_noncharacter(std::string_view text) {
  for (size_t i = 0; i + 3 <= text.size(); ++i) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(text[i + at]); };
    const bool in_first_plane =
        byte(0) == 0xef && ((byte(1) == 0xbf && byte(2) >= 0xbe) ||
                            (byte(1) == 0xb7 && byte(2) >= 0x90 && byte(2) <= 0xaf));
    const bool in_others = byte(0) >= 0xf0 && (byte(1) & 0x0f) == 0x0f && byte(2) == 0xbf &&
                           i + 4 <= text.size() && byte(3) >= 0xbe;
    if (in_first_plane || in_others) {
      return true;
    }
  }
  return false;
}

bool has_noncharacter(const Value& value) {
  if (value.is_list()) {
    return std::any_of(value.as_list().begin(), value.as_list().end(),
                       [](const Value& item) { return has_noncharacter(item); });
  }
  if (value.is_dict()) {
    return std::any_of(value.as_dict().begin(), value.as_dict().end(), [](const auto& entry) {
      return has_noncharacter(std::string_view{entry.first}) || has_noncharacter(entry.second);
    });
  }
  return value.is_string() && has_noncharacter(std::string_view{value.as_string()});
}

void check_written(const Value& value) {
  if (has_noncharacter(value)) {
    return;
  }
  const std::string text = to_yaml(value);
  const Value again = parse_yaml(text, "again");
  if (!identical(again, value)) {
    std::fprintf(stderr, "%s\nwas written as\n%s\nand reads as\n%s\n", to_json(value).c_str(),
                 text.c_str(), to_json(again).c_str());
    require(false, "what was written reads otherwise");
  }
}

}  // namespace

void check_input(std::string_view input) {
  const auto value = unless_refused(ErrorKind::usage, [&] { return parse_yaml(input, "input"); });
  if (value) {
    require(depth_of(*value) <= 65, "too many levels");
    check_written(*value);
  }
  const Value scalar = parse_scalar(input);
  if (valid_utf8(input) == input) {
    check_written(scalar);
  }
}

std::vector<std::string> seeds() {
  return {
      "trainer:\n  max_epochs: 3\n  devices: 2\n  precision: \"bf16\"\nmodel:\n  lr: 1e-3\n",
      "a: [1, 2.5, .inf, -.inf, .nan, ~, null, true, \"x\", 'y', +7, 0x10]\n",
      "# comment\n---\n- a: {b: c, d: [e, f]}\n- |\n  block\n  text\n- >-\n  folded\n  text\n",
      "? key\n: value\n&anchor a: *anchor\n!!str b: !tag c\n%YAML 1.2\n...\n",
      "\"\\x41\\u00e9\\n\": 'it''s'\n\"\": {}\nempty: []\n",
      "[[[[[[{a: {b: {c: [1]}}}]]]]]]",
      "a: &x {<<: *x}\n",
      "\xef\xbb\xbfkey: \xc3\xa9\xf0\x9f\x98\x80\n",
  };
}

}  // namespace muster::fuzz
