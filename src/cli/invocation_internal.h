#pragma once

#include <muster/train/options.h>
#include <muster/value/value.h>

#include <string>
#include <vector>

namespace muster {

/// A command line, read and merged with its YAML file.
struct Invocation {
  std::string program{};  ///< name without folders
  std::string command{};
  std::string ckpt_path{};  ///< as given; "" when not
  bool help = false;
  bool print_config = false;
  /// Sections `trainer`, `model` and `data` as given, without defaults.
  Value config{};
};

/// Reads arguments (without the program's name before them). Error of kind `usage` for what is no
/// option, with the closest known one.
Invocation parse_arguments(const std::string& program, const std::vector<std::string>& arguments);

/// The trainer's options of an invocation, run_dir resolved.
TrainerOptions trainer_options(const Invocation& invocation);

/// How a program is called, for --help.
std::string usage_text(const std::string& program);

/// Thrown to end a program early and well, past the user's code.
struct EarlyExit {
  int code = 0;
};

}  // namespace muster
