// A rank for the tests of launch: test_proc_rank_program ACTION [ARGUMENT].
#include <muster/base/check.h>
#include <muster/base/env.h>
#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/proc/launch.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>
#include <muster/proc/rank_report.h>
#include <muster/proc/signals.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "support/listeners.h"

namespace {

using namespace std::chrono_literals;

[[noreturn]] void fail_with(muster::ErrorKind kind, const std::string& message) {
  try {
    muster::fail(kind, "{}", message);
  } catch (const muster::Error&) {
    muster::RankFailure failure = muster::describe_failure(std::current_exception());
    failure.phase = "validate, epoch 0, batch 3";
    muster::fail_rank(failure);
  }
}

int rank() { return muster::rank_env().value_or(muster::RankEnv{}).rank; }

void sleep_long() { std::this_thread::sleep_for(30s); }

// Returns when every rank of the job has come here, so that a slow start of one does not count.
void meet(const std::string& prefix) {
  const auto env = muster::rank_env().value();
  muster::write_file_atomically(prefix + std::to_string(env.rank), "here");
  for (int other = 0; other < env.world_size; ++other) {
    while (!muster::read_file_if_there(prefix + std::to_string(other))) {
      std::this_thread::sleep_for(1ms);
    }
  }
}

bool has_ended(const std::string& pid) {
  const auto stat = muster::read_file_if_there("/proc/" + pid + "/stat");
  return !stat || stat->find(") Z ") != std::string::npos;
}

// Rank 0 fails as soon as rank 1 has ended.
void one_after_the_other(const std::string& pid_file) {
  if (rank() == 1) {
    muster::write_file_atomically(pid_file, std::to_string(getpid()));
    fail_with(muster::ErrorKind::data, "the first");
  }
  auto pid = muster::read_file_if_there(pid_file);
  for (; !pid || !has_ended(*pid); pid = muster::read_file_if_there(pid_file)) {
    std::this_thread::sleep_for(1ms);
  }
  fail_with(muster::ErrorKind::data, "the second");
}

// Names where the launcher's variables hold, numbers where they do not.
void tell_sockets() {
  const int count = muster::test::open_sockets();
  std::string line =
      muster::format("rank {} has {} socket{}", rank(), count, count == 1 ? "" : "s");
  for (const auto& listener : muster::test::listeners()) {
    const bool store = muster::env_text("MUSTER_STORE_FD") == std::to_string(listener.fd);
    const bool master = muster::env_text("MASTER_PORT") == std::to_string(listener.port);
    line += muster::format(
        ", and listens with {} at {} {}", store ? "MUSTER_STORE_FD" : std::to_string(listener.fd),
        listener.address, master ? "MASTER_PORT" : std::to_string(listener.port));
  }
  line += muster::env_text("MUSTER_STORE_FD") ? "" : ", and no MUSTER_STORE_FD";
  std::printf("%s\n", line.c_str());
}

void wait_for_stop() {
  muster::install_stop_signals();
  std::printf("ready\n");
  std::fflush(stdout);
  for (int i = 0; i < 3000 && !muster::stop_requested(); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  std::printf("stopped by %d\n", muster::stop_signal());
  std::fflush(stdout);
  std::exit(128 + muster::stop_signal());
}

const std::map<std::string, std::function<void(const std::string&)>> actions{
    {"throw", [](const std::string& text) { fail_with(muster::ErrorKind::data, text); }},
    {"throw-long",
     [](const std::string&) { fail_with(muster::ErrorKind::data, std::string(1000000, 'x')); }},
    {"launch-on-own-port",
     [](const std::string&) {
       try {
         muster::launch({"true"}, {.port = muster::rank_env().value().master_port});
       } catch (const muster::Error& error) {
         fail_with(error.kind(), error.what());
       }
     }},
    {"mismatch",
     [](const std::string& prefix) {
       meet(prefix);
       fail_with(muster::ErrorKind::mismatch, "ranks disagree");
     }},
    {"peer-lost-first",
     [](const std::string&) {
       if (rank() == 0) {
         fail_with(muster::ErrorKind::peer_lost, "peer lost: connection reset by peer\nfrom 1");
       }
       std::this_thread::sleep_for(300ms);
       fail_with(muster::ErrorKind::user, "the loss is not finite");
     }},
    {"all-lost",
     [](const std::string& prefix) {
       meet(prefix);
       fail_with(muster::ErrorKind::peer_lost, "peer lost: timeout");
     }},
    {"one-after-the-other", one_after_the_other},
    {"terminate",
     [](const std::string&) {
       muster::install_terminate_handler();
       if (rank() != 1) {
         sleep_long();
       }
       std::thread{[] { muster::fail(muster::ErrorKind::io, "thrown on a thread"); }}.join();
     }},
    {"sockets", [](const std::string&) { tell_sockets(); }},
    {"wait-for-stop", [](const std::string&) { wait_for_stop(); }},
    {"stop-of-one",
     [](const std::string& prefix) {
       muster::install_stop_signals();
       meet(prefix);
       if (rank() == 1) {
         muster::report_begin();
         muster::report_stop(SIGHUP);
         muster::report_stop(SIGINT);
       }
       wait_for_stop();
     }},
    {"attach-and-sleep",
     [](const std::string& pid_file) {
       muster::attach_to_launcher();
       std::FILE* file = std::fopen(pid_file.c_str(), "w");
       std::fprintf(file, "%d\n", getpid());
       std::fclose(file);
       sleep_long();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto action = actions.find(argc > 1 ? argv[1] : "");
  if (action == actions.end()) {
    return 2;
  }
  action->second(argc > 2 ? argv[2] : "");
  return 0;
}
