#include "request.h"

#include <muster/base/check.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>

namespace muster::app {

namespace {

using Arguments = std::vector<std::string>;

constexpr int most_ranks = 1024;

/// What stands for `--name` last, as `--name VALUE` or `--name=VALUE`.
std::optional<std::string> value_of(const Arguments& arguments, std::string_view name) {
  std::optional<std::string> value;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == name && i + 1 < arguments.size()) {
      value = arguments[++i];
    } else if (argument.starts_with(name) && argument[name.size()] == '=') {
      value = argument.substr(name.size() + 1);
    }
  }
  return value;
}

/// The program's command, which is its first argument that is neither an option nor its value.
std::string command_of(const Arguments& program) {
  for (size_t i = 1; i < program.size(); ++i) {
    if (!program[i].starts_with('-')) {
      return program[i];
    }
    const bool takes_value = program[i].starts_with("--") && program[i] != "--help" &&
                             program[i] != "--print_config" &&
                             program[i].find('=') == std::string::npos;
    i += takes_value ? 1 : 0;
  }
  return "";
}

/// The run folder that the program would take.
std::filesystem::path own_run_dir(const Arguments& program) {
  for (const char* name : {"--run_dir", "--trainer.run_dir"}) {
    if (const auto run_dir = value_of(program, name)) {
      return *run_dir;
    }
  }
  check(!value_of(program, "--config"),
        "--ckpt_path best and last are those of a run folder: give --run_dir too, or the "
        "checkpoint's path");
  return std::filesystem::path{"runs"} / std::filesystem::path{program.front()}.filename();
}

}  // namespace

std::vector<std::string> own_options_first(const Arguments& arguments) {
  Arguments own;
  Arguments others;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--world" || argument == "--keep") {
      own.push_back(argument);
      if (i + 1 < arguments.size()) {
        own.push_back(arguments[++i]);
      }
    } else if (argument.starts_with("--world=") || argument.starts_with("--keep=")) {
      own.push_back(argument);
    } else {
      others.push_back(argument);
    }
  }
  std::move(others.begin(), others.end(), std::back_inserter(own));
  return own;
}

std::vector<int> worlds_of(const std::string& text) {
  std::vector<int> worlds;
  for (std::string_view rest = text; !rest.empty() || worlds.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    int world = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + comma, world);
    check(error == std::errc{} && end == rest.data() + comma && world >= 1 && world <= most_ranks,
          "--world {}: expected numbers of ranks from 1 to {}, such as 1,2,3", text, most_ranks);
    check(std::find(worlds.begin(), worlds.end(), world) == worlds.end(),
          "--world {} names {} twice", text, world);
    worlds.push_back(world);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  check(worlds.size() >= 2, "--world {}: one run has nothing to be compared with; give two", text);
  return worlds;
}

void check_program_command(const Arguments& program) {
  const std::string command = command_of(program);
  constexpr std::array<std::string_view, 3> known{"validate", "test", "predict"};
  check(command != "fit",
        "a training takes other steps at other numbers of ranks, so there is nothing to compare; "
        "check validate, test or predict of what it leaves");
  check(std::find(known.begin(), known.end(), command) != known.end(),
        "PROGRAM's command is {}: expected validate, test or predict",
        command.empty() ? "missing" : command);
}

std::vector<std::string> program_for_run(const Arguments& program,
                                         const std::filesystem::path& run_dir, int ranks) {
  Arguments replaced = program;
  const auto checkpoint = value_of(program, "--ckpt_path");
  if (checkpoint == "best" || checkpoint == "last") {
    const auto path = own_run_dir(program) / "checkpoints" / (*checkpoint + ".ckpt");
    replaced.insert(replaced.end(), {"--ckpt_path", std::filesystem::absolute(path).string()});
  }
  // The last one counts.
  replaced.insert(replaced.end(), {"--trainer.run_dir", run_dir.string(), "--trainer.devices",
                                   std::to_string(ranks)});
  return replaced;
}

std::string ranks_text(int ranks) { return format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

std::string ranks_text(const std::vector<int>& worlds) {
  std::string text;
  for (size_t i = 0; i + 1 < worlds.size(); ++i) {
    text += format("{}{}", i == 0 ? "" : ", ", worlds[i]);
  }
  return format("{} and {} ranks", text, worlds.back());
}

}  // namespace muster::app
