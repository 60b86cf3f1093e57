#include <muster/proc/signals.h>

#include <atomic>
#include <csignal>

namespace muster {

namespace {

// A signal handler is given nothing but the number, so its flags cannot be anywhere else.
std::atomic<int> stop_flag{0};
std::atomic<bool> save_flag{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void note_stop_signal(int signal) {
  int none = 0;
  stop_flag.compare_exchange_strong(none, signal);
}

extern "C" void note_save_request(int /*signal*/) { save_flag.store(true); }

void install(int signal, void (*handler)(int), int flags = 0) {
  struct sigaction old {};
  sigaction(signal, nullptr, &old);
  if (old.sa_handler == SIG_IGN && (signal == SIGINT || signal == SIGHUP)) {
    return;
  }
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_stop_signals() {
  install(SIGTERM, note_stop_signal);
  install(SIGHUP, note_stop_signal);
  install(SIGINT, note_stop_signal, static_cast<int>(SA_RESETHAND));
  install(SIGUSR1, note_save_request);
}

int stop_signal() { return stop_flag.load(); }

bool stop_requested() { return stop_signal() != 0; }

bool take_save_request() { return save_flag.exchange(false); }

}  // namespace muster
