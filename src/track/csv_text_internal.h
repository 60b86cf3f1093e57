#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::track {

/// A column's name as a CSV cell: quoted where RFC 4180 asks for it and otherwise as it is (unlike
/// csv_text, which guards what a spreadsheet might run, a name must read back as itself).
std::string csv_name(std::string_view name);

/// A parsed CSV text.
struct CsvRows {
  std::vector<std::vector<std::string>> rows;
  /// Where the line after each row begins in the text; a last line without an end is no row.
  std::vector<size_t> ends;
};

/// Reads RFC 4180 with LF or CRLF ends, at most `most_rows` rows. Never fails: what is no CSV gives
/// strange cells.
CsvRows parse_csv(std::string_view text, size_t most_rows);

}  // namespace muster::track
