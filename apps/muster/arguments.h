#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace muster::app {

/// Parses the arguments of a subcommand. False when help was asked for, which is then printed.
/// Error of kind `usage`, in one line, for what `cli` refuses.
bool parse_arguments(CLI::App& cli, const std::vector<std::string>& arguments);

/// Error of kind `usage` for `text`, which is no option of `cli`; names the closest one.
[[noreturn]] void fail_unknown_option(const CLI::App& cli, const std::string& text);

}  // namespace muster::app
