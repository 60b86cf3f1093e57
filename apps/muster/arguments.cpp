#include "arguments.h"

#include <muster/base/check.h>
#include <muster/base/text.h>

#include <CLI/CLI.hpp>

#include <cstdio>

namespace muster::app {

namespace {

// The option of `cli` nearest to `text`, or "".
std::string closest_option(const CLI::App& cli, const std::string& text) {
  std::vector<std::string> names;
  for (const auto* option : cli.get_options()) {
    for (const auto& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return closest_name(text.substr(0, text.find('=')), names);
}

}  // namespace

bool parse_arguments(CLI::App& cli, const std::vector<std::string>& arguments) {
  try {
    // CLI11 takes them last first.
    cli.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    const std::string message = error.what();
    fail(ErrorKind::usage, "{}; see '{} --help'", message, cli.get_name());
  }
  return true;
}

void fail_unknown_option(const CLI::App& cli, const std::string& text) {
  const std::string closest = closest_option(cli, text);
  check(closest.empty(), "there is no option '{}'; did you mean '{}'?", text, closest);
  fail(ErrorKind::usage, "there is no option '{}'; see '{} --help'", text, cli.get_name());
}

}  // namespace muster::app
