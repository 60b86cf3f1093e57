#include <muster/proc/signals.h>

#include <atomic>
#include <csignal>

namespace muster {

namespace {

// A signal handler is given nothing but the number, so its flag cannot be anywhere else.
std::atomic<std::sig_atomic_t> flag{0};
static_assert(std::atomic<std::sig_atomic_t>::is_always_lock_free);

extern "C" void note_stop_signal(int signal) {
  const int seen = flag.load();
  if (seen == 0 || seen == SIGUSR1) {
    flag.store(signal);
  }
}

void install(int signal, int flags) {
  struct sigaction old {};
  sigaction(signal, nullptr, &old);
  if (old.sa_handler == SIG_IGN && (signal == SIGINT || signal == SIGHUP)) {
    return;
  }
  struct sigaction action {};
  action.sa_handler = note_stop_signal;
  action.sa_flags = SA_RESTART | flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_stop_signals() {
  install(SIGTERM, 0);
  install(SIGHUP, 0);
  install(SIGUSR1, 0);
  install(SIGINT, static_cast<int>(SA_RESETHAND));
}

int stop_signal() { return flag.load(); }

bool stop_requested() { return stop_signal() != 0; }

}  // namespace muster
