#include <muster/base/check.h>
#include <muster/base/streams.h>
#include <muster/base/text.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>

#include "subcommand.h"

namespace {

using muster::app::Subcommand;
using muster::app::subcommands;

void print_help() {
  std::printf("muster SUBCOMMAND ARGS...\n\n");
  for (const auto& subcommand : subcommands) {
    std::printf("  %-10s %s\n", subcommand.name, subcommand.summary);
  }
  std::printf("\n'muster SUBCOMMAND --help' says more.\n");
}

const Subcommand& find_subcommand(const std::string& name) {
  const auto* const found =
      std::find_if(std::begin(subcommands), std::end(subcommands),
                   [&name](const Subcommand& subcommand) { return name == subcommand.name; });
  if (found != std::end(subcommands)) {
    return *found;
  }
  std::vector<std::string> names;
  for (const auto& subcommand : subcommands) {
    names.emplace_back(subcommand.name);
  }
  const std::string closest = muster::closest_name(name, names);
  muster::check(closest.empty(), "there is no subcommand '{}'; did you mean '{}'?", name, closest);
  muster::fail(muster::ErrorKind::usage, "there is no subcommand '{}'; see 'muster --help'", name);
}

int run(const std::vector<std::string>& arguments) {
  muster::check(!arguments.empty(), "a subcommand is missing; see 'muster --help'");
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_help();
    return 0;
  }
  return find_subcommand(arguments[0]).run({arguments.begin() + 1, arguments.end()});
}

}  // namespace

int main(int argc, char** argv) {
  muster::prepare_streams();
  try {
    const int code = run({argv + 1, argv + argc});
    muster::check_streams();
    return code;
  } catch (const muster::Error& error) {
    std::fprintf(stderr, "muster: error: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muster: error: %s\n", error.what());
    return 1;
  }
}
