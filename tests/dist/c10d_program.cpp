// A rank for the tests of c10d: test_dist_c10d_program SCENARIO, with RANK, WORLD_SIZE and so on as
// torchrun sets them.
#include <muster/base/check.h>
#include <muster/comm/c10d.h>
#include <muster/proc/rank_env.h>

#include "../comm/random_program.h"
#include "support/listeners.h"

#include <ATen/ops/full.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

namespace muster::test {
namespace {

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

C10dOptions options_of_environment() {
  C10dOptions options;
  options.rank = number("RANK", 0);
  options.size = number("WORLD_SIZE", 1);
  if (const char* address = std::getenv("MASTER_ADDR")) options.master_addr = address;
  options.master_port = number("MASTER_PORT", 0);
  options.store_fd = options.rank == 0 ? number("STORE_FD", -1) : -1;
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  options.agent_store = agent != nullptr && std::string{agent} == "True";
  options.one_host = true;
  options.key_prefix = rank_env().value_or(RankEnv{}).job;
  options.rendezvous_timeout = number("RENDEZVOUS_TIMEOUT", 60);
  return options;
}

/// Random programs, one after the other on one group; the last one is wrong.
int run_programs(Group& group) {
  const int count = number("PROGRAMS", 10);
  int wrong = 0;
  for (int seed = 0; seed < count; ++seed) {
    group.begin_section("start", seed);
    wrong += run_rank(group, ProgramMaker{static_cast<uint64_t>(seed)}.valid(group.size()), false);
  }
  std::printf("%d programs, %d wrong results\n", count, wrong);
  group.begin_section("last", 0);
  run_rank(group, ProgramMaker{static_cast<uint64_t>(count)}.invalid(group.size()));
  return 1;
}

int run_large(Group& group) {
  std::string mine(group.rank() == 0 ? 10'000'000 : 3, 'x');
  mine.back() = static_cast<char>('0' + group.rank());
  const auto all = group.all_gather(mine);
  const bool ok = all[0].bytes.size() == 10'000'000 && all[0].bytes.back() == '0' &&
                  all[1].bytes == "xx1" && group.all_gather("")[1].bytes.empty();
  group.finish();
  return ok ? 0 : 1;
}

/// Rank 1 dies; the others say how long they took to see it.
int run_killed(Group& group) {
  group.barrier();
  if (group.rank() == 1) kill(getpid(), SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  try {
    group.barrier();
  } catch (const Error&) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("seconds %.3f\n", taken.count());
    throw;
  }
  return 0;
}

/// A second process group beside the one of the collectives, each used while the other lives.
int run_further_group(Group& group) {
  const auto gradients = make_process_group(group, "gradients");
  std::vector<at::Tensor> tensors{at::full({3}, group.rank() + 1.5)};
  gradients->allreduce(tensors)->wait();
  const bool alike = group.all_gather("x").size() == 2 && gradients->getSize() == 2;
  group.finish();
  return alike && tensors[0].equal(at::full({3}, 4.0)) ? 0 : 1;
}

int run_leaves(Group& group) {
  group.barrier();  // until here the other may still be connecting
  if (group.rank() == 0) return 0;
  group.barrier();
  return 0;
}

/// Fails on torchrun's first attempt only, whose keys stay in the agent's store.
int run_restarted(Group& group) {
  group.barrier();
  group.finish();
  return number("TORCHELASTIC_RESTART_COUNT", 0) == 0 ? 1 : 0;
}

int run_gives_up(Group& group) {
  group.barrier();
  if (group.rank() == 0) group.abort("no more");
  group.barrier();
  return 0;
}

int run_listeners(Group& group) {
  group.barrier();
  for (const auto& listener : listeners()) {
    std::printf("listens %s %d\n", listener.address.c_str(), listener.port);
  }
  group.finish();
  return 0;
}

int run_inherited(Group& group) {
  const auto further = make_process_group(group, "gradients");
  group.barrier();
  int passed = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(static_cast<const char*>(entry->d_name));
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_INET) continue;
    if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) ++passed;
  }
  closedir(folder);
  std::printf("sockets that are passed on: %d\n", passed);
  group.finish();
  return 0;
}

int run(const std::string& scenario) {
  const std::map<std::string, std::function<int(Group&)>> scenarios{
      {"programs", run_programs},   {"large", run_large},
      {"killed", run_killed},       {"listeners", run_listeners},
      {"inherited", run_inherited}, {"leaves", run_leaves},
      {"gives up", run_gives_up},   {"further group", run_further_group},
      {"restarted", run_restarted},
  };
  Group group = make_c10d_group(options_of_environment());
  return scenarios.at(scenario)(group);
}

}  // namespace
}  // namespace muster::test

int main(int argc, char** argv) {
  int code = 2;
  try {
    code = muster::test::run(argc == 2 ? argv[1] : "");
  } catch (const muster::Error& error) {
    std::printf("error: %s\n", error.what());
    code = error.exit_code();
  }
  std::fflush(stdout);
  // Gloo's threads may live on after a lost peer.
  _exit(code);
}
