#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::app {

/// `text` on a terminal or in a log: control characters, those that turn the direction of writing,
/// and bytes that are not UTF-8 show as \xNN.
std::string printable(std::string_view text);

/// How many columns a printable text takes: wide characters two, combining ones none.
size_t columns_of(std::string_view text);

/// `text` in at most `most` >= 3 columns; the middle of a longer one becomes an ellipsis.
std::string shortened(std::string_view text, size_t most);

}  // namespace muster::app
