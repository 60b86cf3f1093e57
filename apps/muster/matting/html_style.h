#pragma once

#include <string_view>

namespace muster::app {

/// The page's style sheet: light and dark, narrow and wide.
std::string_view html_style();

}  // namespace muster::app
