#include "src/proc/crash_report_internal.h"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string_view>

#include "src/proc/error_pipe_internal.h"
#include "src/proc/failure_record_internal.h"

namespace muster::detail {

namespace {

constexpr int most_frames = 64;

// A signal handler is given nothing but the number.
std::atomic<int> launcher{-1};

// Only what may be called in a signal handler; the first call of backtrace, which may not, was
// before.
extern "C" void report_crash(int signal) {
  const int fd = launcher.load();
  write_all(fd >= 0 ? fd : STDERR_FILENO, fd >= 0 ? stack_line : "muster: the stack of a crash:\n");
  std::array<void*, most_frames> frames{};
  const int count = backtrace(frames.data(), most_frames);
  backtrace_symbols_fd(frames.data(), count, fd >= 0 ? fd : STDERR_FILENO);
  raise(signal);  // The usual action is back.
}

// Its own stack, since a stack that has overflowed is of no use any more.
void use_other_stack() {
  static std::array<char, 1 << 16> memory;
  const stack_t stack{.ss_sp = memory.data(), .ss_flags = 0, .ss_size = memory.size()};
  sigaltstack(&stack, nullptr);
}

}  // namespace

void install_crash_report() {
  launcher = inherited_error_pipe().value_or(-1);
  void* frame = nullptr;
  backtrace(&frame, 1);
  use_other_stack();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction action {};
    action.sa_handler = report_crash;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace muster::detail
