#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::app {

/// What `muster check` was asked for.
struct CheckRequest {
  std::vector<int> worlds{1, 2, 3};    ///< numbers of ranks; the others are compared with the first
  std::filesystem::path keep{};        ///< where run folders are to stay; "": nowhere
  std::vector<std::string> program{};  ///< PROGRAM and its own arguments
};

/// The arguments with `--world` and `--keep`, which may stand among those of PROGRAM, in front.
std::vector<std::string> own_options_first(const std::vector<std::string>& arguments);

/// "1,2,3". Error of kind `usage` unless these are two or more different numbers from 1 to 1024.
std::vector<int> worlds_of(const std::string& text);

/// Error of kind `usage` unless the command among PROGRAM's arguments is validate, test or predict.
void check_program_command(const std::vector<std::string>& program);

/// PROGRAM's command line for one of the runs: its own, with the run folder and the number of ranks
/// replaced. `--ckpt_path best` and `last` still mean those of the folder that it names itself;
/// Error of kind `usage` where that is in a configuration file.
std::vector<std::string> program_for_run(const std::vector<std::string>& program,
                                         const std::filesystem::path& run_dir, int ranks);

/// "1 rank", "2 ranks".
std::string ranks_text(int ranks);
/// "1, 2 and 3 ranks".
std::string ranks_text(const std::vector<int>& worlds);

}  // namespace muster::app
