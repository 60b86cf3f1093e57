#include <muster/base/check.h>
#include <muster/base/random_name.h>
#include <muster/base/streams.h>
#include <muster/proc/launch.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "src/proc/error_pipe_internal.h"
#include "src/proc/spawn_internal.h"
#include "src/proc/stop_signals_internal.h"
#include "src/proc/supervisor_internal.h"

namespace muster {

namespace {

using detail::Descriptor;

// This process's environment without what a launcher above it, or torchrun, said to it.
std::vector<std::string> base_environment() {
  constexpr std::array<std::string_view, 16> replaced{"RANK",
                                                      "LOCAL_RANK",
                                                      "WORLD_SIZE",
                                                      "LOCAL_WORLD_SIZE",
                                                      "MASTER_ADDR",
                                                      "MASTER_PORT",
                                                      "MUSTER_JOB",
                                                      "MUSTER_LAUNCHED",
                                                      "MUSTER_RUN_DIR",
                                                      "MUSTER_ERROR_FD",
                                                      "MUSTER_STORE_FD",
                                                      "MUSTER_PLACE_FD",
                                                      "TORCHELASTIC_RUN_ID",
                                                      "GROUP_RANK",
                                                      "ROLE_RANK",
                                                      "TORCHELASTIC_USE_AGENT_STORE"};
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable{*entry};
    const auto name = variable.substr(0, variable.find('='));
    if (std::find(replaced.begin(), replaced.end(), name) == replaced.end()) {
      kept.emplace_back(variable);
    }
  }
  return kept;
}

class Starter {
 public:
  Starter(const std::vector<std::string>& argv, const LaunchOptions& options,
          const sigset_t& signal_mask)
      : listener_{detail::listen_on_loopback(options.port)},
        null_{open("/dev/null", O_RDONLY | O_CLOEXEC)} {
    base_.path = options.self_exe ? "/proc/self/exe" : detail::find_program(argv[0]);
    base_.argv = argv;
    base_.signal_mask = signal_mask;
    base_.environment = base_environment();
    add(base_, "WORLD_SIZE", options.ranks);
    add(base_, "LOCAL_WORLD_SIZE", options.ranks);
    add(base_, "MASTER_ADDR", "127.0.0.1");
    add(base_, "MASTER_PORT", detail::port_of(listener_));
    // The prefix of the keys in the store, which no stranger on this host may guess.
    add(base_, "MUSTER_JOB", random_name());
    add(base_, "MUSTER_LAUNCHED", 1);
    if (!options.run_dir.empty()) {
      add(base_, "MUSTER_RUN_DIR", options.run_dir);
    }
  }

  detail::RankProcess start(int rank) {
    detail::Pipe errors = detail::make_pipe();
    fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
    detail::SpawnRequest request = base_;
    add(request, "RANK", rank);
    add(request, "LOCAL_RANK", rank);
    add(request, "MUSTER_ERROR_FD", detail::descriptor_variable(errors.write.get()));
    request.passed = {errors.write.get()};
    detail::SharedPlace place;
    if (place.descriptor() >= 0) {
      add(request, "MUSTER_PLACE_FD", detail::descriptor_variable(place.descriptor()));
      request.passed.push_back(place.descriptor());
    }
    if (rank == 0) {
      add(request, "MUSTER_STORE_FD", listener_.get());
      request.passed.push_back(listener_.get());
    } else {
      request.stdin_fd = null_.get();
    }
    const pid_t pid = detail::spawn(request);
    place.close_descriptor();
    if (rank == 0) {
      listener_
          .reset();  // Rank 0's copy is the only one: when it ends, the port is refused at once.
    }
    return detail::RankProcess{rank, pid, std::move(errors.read), std::move(place)};
  }

 private:
  template <typename T>
  static void add(detail::SpawnRequest& request, const char* name, const T& value) {
    request.environment.push_back(format("{}={}", name, value));
  }

  Descriptor listener_;
  Descriptor null_;
  detail::SpawnRequest base_;
};

void check_options(const std::vector<std::string>& argv, const LaunchOptions& options) {
  check(!argv.empty() && !argv[0].empty(), "launch needs a program to start");
  check(options.ranks >= 1 && options.ranks <= 1024, "expected 1 to 1024 ranks, found {}",
        options.ranks);
  check(options.port >= 0 && options.port <= 65535, "expected a port in 0 to 65535, found {}",
        options.port);
  check(options.grace_s >= 0 && options.stop_grace_s >= 0,
        "a grace time is a number of seconds, and not below 0");
}

}  // namespace

int launch(const std::vector<std::string>& argv, const LaunchOptions& options) {
  check_options(argv, options);
  open_standard_streams();  // so that no pipe or socket of ours becomes a rank's stdout
  detail::StopSignals signals;
  detail::Supervisor supervisor{signals, options};
  {
    Starter starter{argv, options, signals.mask_before()};
    for (int rank = 0; rank < options.ranks; ++rank) {
      supervisor.add(starter.start(rank));
    }
  }
  const detail::Verdict verdict = supervisor.run();
  detail::write_all(STDERR_FILENO, verdict.text);
  return verdict.exit_code;
}

}  // namespace muster
