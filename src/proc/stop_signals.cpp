#include "src/proc/stop_signals_internal.h"

#include <muster/base/check.h>

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace muster::detail {

namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

StopSignals::StopSignals() {
  sigset_t waited;
  sigemptyset(&waited);
  sigaddset(&waited, SIGPIPE);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    // A blocked signal would wait even where it is ignored, as nohup does with SIGHUP.
    if (!is_ignored(signal)) {
      sigaddset(&waited, signal);
    }
  }
  descriptor_ = Descriptor{signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK)};
  check(static_cast<bool>(descriptor_), ErrorKind::output, "cannot make a signal descriptor");
  pthread_sigmask(SIG_BLOCK, &waited, &mask_before_);
  // A parent that ignores SIGCHLD hands that on, and the system would then drop exit codes.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_before_);
}

StopSignals::~StopSignals() {
  while (take() != 0) {
    // A signal that came twice must not end the process when it is let through again.
  }
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int StopSignals::take() const {
  signalfd_siginfo info{};
  while (read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != SIGPIPE) {
      return static_cast<int>(info.ssi_signo);
    }
  }
  return 0;
}

}  // namespace muster::detail
