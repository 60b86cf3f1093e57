#pragma once

#include <muster/proc/rank_failure.h>
#include <muster/train/options.h>
#include <muster/value/value.h>

#include <exception>
#include <map>
#include <string>
#include <vector>

namespace muster {

/// A command line, read and merged with its YAML file.
struct Invocation {
  std::string program{};  ///< name without folders
  std::string command{};
  std::string ckpt_path{};            ///< as given; "" when not
  TrainerOptions trainer_defaults{};  ///< of the program
  bool help = false;
  bool print_config = false;
  /// Sections `trainer`, `model` and `data` as given, without defaults.
  Value config{};
  /// What the command line gave, by dotted path, as it stands there.
  std::map<std::string, std::string> texts{};
};

/// Reads arguments (without the program's name before them). Error of kind `usage` for what is no
/// option, with the closest known one.
Invocation parse_arguments(const std::string& program, const std::vector<std::string>& arguments);

/// A section of the configuration as it was given. Where `defaults` has a text, what stands on the
/// command line is meant as it stands: 007 is no number and "" is not null.
Value section_of(const Invocation& invocation, const std::string& name, const Value& defaults);

/// The trainer's options of an invocation, run_dir resolved.
TrainerOptions trainer_options(const Invocation& invocation);

/// How a program is called, for --help.
std::string usage_text(const std::string& program);

/// As describe_failure, less the C++ stack that torch's errors carry in their text.
RankFailure failure_of(const std::exception_ptr& error);

}  // namespace muster
