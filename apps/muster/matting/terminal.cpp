#include "terminal.h"

#include <muster/base/format.h>
#include <muster/base/text.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace muster::app {

namespace {

struct Character {
  std::string_view bytes{};
  uint32_t code = 0;  ///< 0 for a byte that is no part of UTF-8
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const std::string_view bytes = text.substr(0, length);
  if (valid_utf8(bytes) != bytes) {
    return {.bytes = text.substr(0, 1)};
  }
  uint32_t code = length == 1 ? lead : lead & (0xffU >> (length + 1));
  for (const char c : bytes.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
  }
  return {.bytes = bytes, .code = code};
}

using Range = std::pair<uint32_t, uint32_t>;

template <size_t n>
bool among(const std::array<Range, n>& ranges, uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const Range& range) {
    return code >= range.first && code <= range.second;
  });
}

bool is_shown(const Character& character) {
  constexpr std::array<Range, 5> hidden{
      {{0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}}};
  return !among(hidden, character.code);
}

size_t columns_of(const Character& character) {
  constexpr std::array<Range, 3> none{{{0x300, 0x36f}, {0x200b, 0x200d}, {0xfe00, 0xfe0f}}};
  constexpr std::array<Range, 8> two{{{0x1100, 0x115f},
                                      {0x2e80, 0xa4cf},
                                      {0xac00, 0xd7a3},
                                      {0xf900, 0xfaff},
                                      {0xfe30, 0xfe6f},
                                      {0xff00, 0xff60},
                                      {0x1f300, 0x1faff},
                                      {0x20000, 0x3fffd}}};
  return among(none, character.code) ? 0 : among(two, character.code) ? 2 : 1;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character character = first_character(text);
    if (is_shown(character)) {
      out += character.bytes;
    } else {
      for (const char c : character.bytes) {
        out += format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
      }
    }
    text.remove_prefix(character.bytes.size());
  }
  return out;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    columns += columns_of(character);
    text.remove_prefix(character.bytes.size());
  }
  return columns;
}

std::string shortened(std::string_view text, size_t most) {
  if (columns_of(text) <= most) {
    return std::string{text};
  }
  std::vector<Character> characters;
  for (std::string_view rest = text; !rest.empty();
       rest.remove_prefix(characters.back().bytes.size())) {
    characters.push_back(first_character(rest));
  }
  const size_t at_start = (most - 1) / 2;
  std::string start;
  for (size_t i = 0, used = 0; (used += columns_of(characters[i])) <= at_start; ++i) {
    start += characters[i].bytes;
  }
  std::string end;
  const size_t at_end = most - 1 - at_start;
  for (size_t i = characters.size(), used = 0; (used += columns_of(characters[i - 1])) <= at_end;
       --i) {
    end.insert(0, characters[i - 1].bytes);
  }
  return start + "…" + end;
}

}  // namespace muster::app
