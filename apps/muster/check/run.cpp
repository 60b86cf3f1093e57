#include "run.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/proc/launch.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "../matting/terminal.h"
#include "request.h"

namespace muster::app {

namespace fs = std::filesystem;

namespace {

constexpr int shown_lines = 30;

/// Sends this process's standard output and error to a file, and so those of ranks that it starts.
class OutputTo {
 public:
  explicit OutputTo(const fs::path& path) {
    std::fflush(stdout);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    check(file >= 0, ErrorKind::output, "cannot make {}: {}", path.string(),
          std::generic_category().message(errno));
    for (const int stream : streams) {
      before_.at(static_cast<size_t>(stream - 1)) = fcntl(stream, F_DUPFD_CLOEXEC, 3);
      dup2(file, stream);
    }
    close(file);
  }
  OutputTo(const OutputTo&) = delete;
  OutputTo& operator=(const OutputTo&) = delete;
  ~OutputTo() {
    for (const int stream : streams) {
      const int before = before_.at(static_cast<size_t>(stream - 1));
      dup2(before, stream);
      close(before);
    }
  }

 private:
  static constexpr std::array<int, 2> streams{STDOUT_FILENO, STDERR_FILENO};
  std::array<int, 2> before_{};
};

/// The last lines of a text.
std::string_view end_of(std::string_view text) {
  size_t at = text.size();
  for (int lines = 0; at > 0 && lines <= shown_lines; ++lines) {
    at = text.rfind('\n', at - 1);
    if (at == std::string_view::npos) {
      return text;
    }
  }
  return at == 0 ? text : text.substr(at + 1);
}

void show_end(const fs::path& output) {
  std::string_view text;
  const auto all = read_file_if_there(output);
  for (text = end_of(all ? *all : std::string_view{}); !text.empty();) {
    const auto end = std::min(text.find('\n'), text.size());
    std::fprintf(stderr, "  %s\n", printable(text.substr(0, end)).c_str());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

CheckFolder::CheckFolder(const fs::path& keep) : path_{keep}, stays_{!keep.empty()} {
  std::error_code none;
  if (stays_) {
    check(!fs::exists(path_, none) || fs::is_empty(path_, none),
          "--keep {}: there is something already; name a new folder", path_.string());
    make_folder(path_);
    path_ = fs::absolute(path_);
    return;
  }
  std::string pattern = (fs::temp_directory_path() / "muster-check-XXXXXX").string();
  const bool made = mkdtemp(pattern.data()) != nullptr;  // before errno is read
  check(made, ErrorKind::output, "cannot make a folder in {}: {}",
        fs::path{pattern}.parent_path().string(), std::generic_category().message(errno));
  path_ = pattern;
}

CheckFolder::~CheckFolder() {
  std::error_code ignored;
  if (!stays_) {
    fs::remove_all(path_, ignored);
  }
}

fs::path CheckFolder::run_dir(int ranks) const { return path_ / format("ranks-{}", ranks); }

fs::path CheckFolder::output(int ranks) const { return path_ / format("ranks-{}.log", ranks); }

int run_program(const std::vector<std::string>& program, const CheckFolder& folder, int ranks) {
  std::fprintf(stderr, "muster check: %s ... ", ranks_text(ranks).c_str());
  std::fflush(stderr);
  const auto begin = std::chrono::steady_clock::now();
  int code = 0;
  try {
    const OutputTo output{folder.output(ranks)};
    code = launch(program_for_run(program, folder.run_dir(ranks), ranks),
                  {.ranks = ranks, .run_dir = folder.run_dir(ranks).string()});
  } catch (...) {
    std::fputs("\n", stderr);
    throw;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "%.1f s\n", taken.count());
  if (code != 0) {
    std::fprintf(stderr, "muster check: %s at %s ended with exit code %d, and said at last\n",
                 printable(program.front()).c_str(), ranks_text(ranks).c_str(), code);
    show_end(folder.output(ranks));
  }
  return code;
}

}  // namespace muster::app
