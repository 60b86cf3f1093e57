#include <muster/base/check.h>
#include <muster/base/streams.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

namespace muster {

namespace {

/// What a pipe takes at once.
constexpr size_t whole_line = 4096;

extern "C" void pass_over(int /*signal*/) {}

/// Writing fails instead. By a handler, which programs that this one starts do not inherit.
void outlive(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  if (now.sa_handler == SIG_DFL) {
    struct sigaction action {};
    action.sa_handler = pass_over;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

/// With the reason, if it is still known: of a write that failed long ago it is not.
void check_flushed(bool written, std::string_view besides) {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  check(flushed && written, ErrorKind::io,
        "the standard output did not take all that was printed{}{}{}", error != 0 ? ": " : "",
        error != 0 ? std::generic_category().message(error) : "", besides);
}

}  // namespace

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) {
      static_cast<void>(open("/dev/null", O_RDWR));  // takes the lowest number, which is `stream`
    }
  }
}

void prepare_streams() {
  open_standard_streams();
  outlive(SIGPIPE);  // of a stream that nobody reads any more
  outlive(SIGXFSZ);  // of a file that may not grow
}

void write_whole_lines() {
  for (std::FILE* stream : {stdout, stderr}) {
    if (isatty(fileno(stream)) == 0) {
      std::setvbuf(stream, nullptr, _IOLBF, whole_line);
    }
  }
}

void print_text(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  check_flushed(written, "");
}

void check_streams(std::string_view besides) {
  errno = 0;
  check_flushed(std::ferror(stdout) == 0, besides);
}

}  // namespace muster
