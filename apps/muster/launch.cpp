#include <muster/base/check.h>
#include <muster/proc/launch.h>

#include <CLI/CLI.hpp>

#include "arguments.h"
#include "subcommand.h"

namespace muster::app {

namespace {

struct Request {
  LaunchOptions options{};
  int nodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
};

void declare(CLI::App& cli, Request& request) {
  cli.prefix_command();  // What follows PROGRAM is PROGRAM's, options too.
  cli.add_option("-n,--nproc_per_node", request.options.ranks, "ranks to start (needed)");
  cli.add_option("--nnodes", request.nodes, "hosts of the job; this launcher supports 1")
      ->capture_default_str();
  cli.add_option("--node_rank", request.node_rank, "this host among them")->capture_default_str();
  cli.add_option("--master_addr", request.master_addr, "where rank 0 hosts the store")
      ->capture_default_str();
  cli.add_option("--master_port", request.options.port, "its port; 0: a free one")
      ->capture_default_str();
  cli.add_option("--grace", request.options.grace_s,
                 "seconds from SIGTERM to SIGKILL after a rank has failed")
      ->capture_default_str();
  cli.add_option("--stop_grace", request.options.stop_grace_s,
                 "the same when the job is told to stop")
      ->capture_default_str();
}

void check_hosts(const Request& request) {
  check(
      request.nodes == 1,
      "--nnodes {}: 'muster launch' starts ranks on one host only; on several, start PROGRAM with "
      "torchrun, whose variables every Muster program reads",
      request.nodes);
  check(request.node_rank == 0, "--node_rank {} is not below --nnodes 1", request.node_rank);
  check(request.master_addr == "127.0.0.1" || request.master_addr == "localhost",
        "--master_addr {}: on one host the store listens on loopback only; leave the option out",
        request.master_addr);
}

std::vector<std::string> program_of(const CLI::App& cli) {
  std::vector<std::string> program = cli.remaining();
  if (!program.empty() && program[0] == "--") {
    program.erase(program.begin());
  } else if (!program.empty() && program[0].starts_with('-')) {
    fail_unknown_option(cli, program[0]);
  }
  check(!program.empty(), "PROGRAM is missing; see 'muster launch --help'");
  return program;
}

}  // namespace

int launch_command(const std::vector<std::string>& arguments) {
  CLI::App cli{
      "muster launch -n N [OPTIONS] PROGRAM ARGS...\n\n"
      "Starts N ranks of PROGRAM on this host and supervises them: the first to fail ends the job, "
      "and\nits exit code is the launcher's. Options after PROGRAM are PROGRAM's.",
      "muster launch"};
  Request request;
  declare(cli, request);
  if (!parse_arguments(cli, arguments)) {
    return 0;
  }
  const auto program = program_of(cli);
  check(cli.count("-n") > 0, "-n N, the number of ranks, is missing; it stands before PROGRAM");
  check_hosts(request);
  return launch(program, request.options);
}

}  // namespace muster::app
