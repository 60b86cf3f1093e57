#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/text.h>

#include <algorithm>
#include <vector>

namespace muster {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

/// Twice the number of edits between two names: replacing a letter by its other case costs half an
/// edit.
size_t half_edits(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> before(width);
  std::vector<size_t> above(width);
  std::vector<size_t> row(width);
  for (size_t j = 0; j < width; ++j) {
    row[j] = 2 * j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = 2 * i;
    for (size_t j = 1; j < width; ++j) {
      const char x = a[i - 1];
      const char y = b[j - 1];
      const size_t replace = x == y ? 0 : lower(x) == lower(y) ? 1 : 2;
      row[j] = std::min({above[j] + 2, row[j - 1] + 2, above[j - 1] + replace});
      if (i > 1 && j > 1 && x == b[j - 2] && y == a[i - 2]) {
        row[j] = std::min(row[j], before[j - 2] + 2);
      }
    }
  }
  return row[b.size()];
}

/// How many half edits away a candidate may be; a name that changes altogether was not meant.
size_t most_half_edits(std::string_view name) {
  return std::min(name.size(), 2 * std::max<size_t>(2, name.size() / 3));
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// Bytes of the well-formed UTF-8 character that `text` begins with (table 3-7 of the Unicode
/// standard), or 0 when it begins with none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  // The second byte keeps out overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < lowest || byte(1) > highest) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  return length;
}

}  // namespace

std::string closest_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string_view name_end = last_part(name);
  size_t fewest = SIZE_MAX;
  std::string_view closest;
  const auto consider = [&](std::string_view candidate, size_t edits, size_t most) {
    if (edits <= most && edits < fewest) {
      fewest = edits;
      closest = candidate;
    }
  };
  for (const std::string_view candidate : candidates) {
    consider(candidate, half_edits(name, candidate), most_half_edits(name));
    // Half an edit more, so that of two equal ends the one with the nearer beginning wins.
    consider(candidate, half_edits(name_end, last_part(candidate)) + 1, most_half_edits(name_end));
  }
  return std::string{closest};
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    out += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string safe_file_name(std::string_view text, size_t max_length) {
  constexpr size_t kDigest = 32;
  constexpr size_t kEnd = kDigest + 2;
  check(max_length >= 40, "a safe file name needs room for 40 characters, not {}", max_length);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  size_t kept = 0;  // up to here `out` may be cut: no %XX is torn, and the digest still fits
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = is_upper(c) || is_lower(c) || (c >= '0' && c <= '9') || c == '_' ||
                       c == '-' || (c == '.' && !out.empty());
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4U], kHex[byte & 0xfU]};
    }
    if (out.size() + kEnd <= max_length) {
      kept = out.size();
    }
  }
  if (out.size() > max_length) {
    out.resize(kept);
    out += "%-";  // no text gives that, so a cut name equals none that was not cut
    out += sha256_hex(text).substr(0, kDigest);
  }
  // A lone % comes from no other text: each of theirs has two digits after it.
  return out.empty() ? "%" : out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += i <= count ? letters[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return out;
}

std::string csv_text(std::string_view text) {
  std::string cell;
  if (!text.empty() && std::string_view{"=+-@\t\r"}.find(text.front()) != std::string_view::npos) {
    cell += '\'';
  }
  cell += text;
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    return cell;
  }
  std::string quoted = "\"";
  for (const char c : cell) {
    quoted += c;
    if (c == '"') {
      quoted += '"';
    }
  }
  return quoted + '"';
}

}  // namespace muster
