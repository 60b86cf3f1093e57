#include "src/track/csv_text_internal.h"

#include <muster/base/text.h>

#include <utility>

namespace muster::track {

std::string csv_name(std::string_view name) {
  std::string clean = valid_utf8(name);
  if (clean.find_first_of("\",\r\n") == std::string::npos) {
    return clean;
  }
  std::string out = "\"";
  for (const char c : clean) {
    out.append(c == '"' ? 2 : 1, c);
  }
  return out + '"';
}

CsvRows parse_csv(std::string_view text, size_t most_rows) {
  CsvRows out;
  std::vector<std::string> row(1);
  bool quoted = false;
  for (size_t at = 0; at < text.size() && out.rows.size() < most_rows; ++at) {
    const char c = text[at];
    const bool doubled = quoted && c == '"' && at + 1 < text.size() && text[at + 1] == '"';
    if (doubled) {
      row.back() += c;
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      row.back() += c;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      out.rows.push_back(std::exchange(row, std::vector<std::string>(1)));
      out.ends.push_back(at + 1);
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  return out;
}

}  // namespace muster::track
