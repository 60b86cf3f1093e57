#pragma once

#include <span>
#include <string>
#include <vector>

namespace muster::app {

/// One subcommand of `muster`. `run` gets what follows its name and returns the exit code; an Error
/// that it throws is printed by main.
struct Subcommand {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>& arguments);
};

int check_command(const std::vector<std::string>& arguments);
int launch_command(const std::vector<std::string>& arguments);
int matting_command(const std::vector<std::string>& arguments);

/// All of them, in the order of `muster --help`. A new one is a source and a line here.
inline constexpr Subcommand subcommands[] = {
    {"check", "whether a program's results are the same at several numbers of ranks",
     check_command},
    {"launch", "start and supervise the ranks of a program", launch_command},
    {"matting", "errors of predicted alpha mattes against the truth", matting_command},
};

}  // namespace muster::app
