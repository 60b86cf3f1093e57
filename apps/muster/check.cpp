#include <muster/base/check.h>
#include <muster/track/compare_runs.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "arguments.h"
#include "check/report.h"
#include "check/request.h"
#include "check/run.h"
#include "subcommand.h"

namespace muster::app {

namespace {

/// Nothing when help was asked for.
std::optional<CheckRequest> request_of(const std::vector<std::string>& arguments) {
  CLI::App cli{
      "muster check PROGRAM validate|test|predict ARGS... [--world 1,2,3] [--keep DIR]\n\n"
      "Runs PROGRAM at each number of ranks, each time into a run folder of its own, and compares\n"
      "results.json, tables and predictions byte for byte. Exit code 0: equal. 1: not, and the "
      "first\ndifference is named, with what environment.json says about it. That of PROGRAM when "
      "it "
      "fails.",
      "muster check"};
  cli.prefix_command();  // What follows PROGRAM is PROGRAM's.
  std::string worlds;
  CheckRequest request;
  cli.add_option("--world", worlds,
                 "numbers of ranks; the others are compared with the first (default 1,2,3)");
  cli.add_option("--keep", request.keep, "a new folder in which the run folders stay");
  if (!parse_arguments(cli, own_options_first(arguments))) {
    return std::nullopt;
  }
  request.program = cli.remaining();
  if (!request.program.empty() && request.program[0] == "--") {
    request.program.erase(request.program.begin());
  } else if (!request.program.empty() && request.program[0].starts_with('-')) {
    fail_unknown_option(cli, request.program[0]);
  }
  check(!request.program.empty(), "PROGRAM is missing; see 'muster check --help'");
  check_program_command(request.program);
  if (cli.count("--world") > 0) {
    request.worlds = worlds_of(worlds);
  }
  check(cli.count("--keep") == 0 || !request.keep.empty(), "--keep needs a path");
  return request;
}

void check_run_dir(const CheckRequest& request, const std::filesystem::path& run_dir, int ranks) {
  for (const char* file : {"results.json", "environment.json"}) {
    check(std::filesystem::exists(run_dir / file), ErrorKind::data,
          "{} at {} has left no {} in the run folder that it was given; only programs of Muster "
          "can be checked",
          request.program.front(), ranks_text(ranks), file);
  }
}

}  // namespace

int check_command(const std::vector<std::string>& arguments) {
  const auto request = request_of(arguments);
  if (!request) {
    return 0;
  }
  const CheckFolder folder{request->keep};
  const int first = request->worlds.front();
  std::vector<CheckedRun> runs;
  bool equal = true;
  for (const int ranks : request->worlds) {
    if (const int code = run_program(request->program, folder, ranks); code != 0) {
      return code;
    }
    check_run_dir(*request, folder.run_dir(ranks), ranks);
    if (ranks == first) {
      continue;
    }
    runs.push_back(
        {.ranks = ranks,
         .comparison = compare_runs(folder.run_dir(first), folder.run_dir(ranks)),
         .environment = compare_environments(folder.run_dir(first), folder.run_dir(ranks))});
    equal = equal && runs.back().comparison.differences.empty();
  }
  std::fputs(check_report(first, runs).c_str(), stdout);
  if (!equal && request->keep.empty()) {
    std::fputs("With --keep DIR the run folders stay.\n", stdout);
  }
  return equal ? 0 : 1;
}

}  // namespace muster::app
