#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// The candidate nearest to `name` by edits (insert, delete, replace, swap of neighbours), or ""
/// when none is near enough to be meant. Letter case counts half an edit. What follows the last dot
/// may match alone, so `lr` is near `model.lr`. Of equally near ones the first.
std::string closest_name(std::string_view name, std::span<const std::string> candidates);

/// `text` with every byte that is no part of well-formed UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// A file name made from any text: bytes outside [A-Za-z0-9._-] become %XX, so does a leading dot,
/// and the result has at most `max_length` >= 40 characters (a digest of the text ends one that was
/// cut). Never empty; different texts give different names.
std::string safe_file_name(std::string_view text, size_t max_length = 180);

/// `text` for HTML content and quoted attributes: & < > " ' are escaped, invalid UTF-8 replaced.
std::string escape_html(std::string_view text);

/// One cell of a CSV file, quoted where RFC 4180 asks for it. A text cell that a spreadsheet would
/// take for a formula (it begins with = + - @, tab or carriage return) gets a leading apostrophe.
std::string csv_text(std::string_view text);

/// The bytes in base64 (RFC 4648), with padding.
std::string base64(std::string_view bytes);

}  // namespace muster
