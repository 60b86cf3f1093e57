#pragma once

#include <muster/value/value.h>

#include <string>
#include <string_view>

namespace muster {

/// A YAML document as a tree; plain scalars become null, bool, int or float where they look like
/// one (YAML 1.2), quoted ones stay texts. Error of kind `usage` that names `source` and the line;
/// also for zero bytes, what is not UTF-8, more than 1 MB, 64 levels or 100,000 values, tags,
/// aliases, a key that stands twice and a second document.
Value parse_yaml(std::string_view text, std::string_view source);

/// A single value from the command line, by the rules of `parse_yaml`; what begins like a list, a
/// dict or a quoted text and is none is a text.
Value parse_scalar(std::string_view text);

/// The tree as YAML that `parse_yaml` reads back as the same tree, except that bytes that are no
/// UTF-8 and Unicode's noncharacters become U+FFFD. No tensors.
std::string to_yaml(const Value& value);

}  // namespace muster
