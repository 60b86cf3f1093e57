#include "program.h"

#include "temp_folder.h"

#include <muster/base/files.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace muster::test {

namespace fs = std::filesystem;

Outcome run_program(const fs::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment) {
  const TempFolder folder;
  const std::string out = (folder / "out").string();
  const std::string err = (folder / "err").string();
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);

  std::vector<std::string> texts{program.string()};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(texts.size() + 1);
  for (auto& text : texts) {
    argv.push_back(text.data());
  }
  argv.push_back(nullptr);
  std::vector<std::string> variables = environment;
  std::vector<char*> envp;
  envp.reserve(variables.size() + 1);
  for (auto& variable : variables) {
    envp.push_back(variable.data());
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    envp.push_back(*variable);
  }
  envp.push_back(nullptr);

  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw std::runtime_error{"cannot start " + program.string()};
  }
  int status = 0;
  waitpid(pid, &status, 0);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), taken.count(),
          read_file(out), read_file(err)};
}

std::vector<std::pair<std::string, std::string>> files_of(const fs::path& folder,
                                                          const std::vector<std::string>& parts) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& part : parts) {
    if (fs::is_regular_file(folder / part)) {
      files.emplace_back(part, read_file(folder / part));
    } else if (fs::is_directory(folder / part)) {
      for (const auto& entry : fs::recursive_directory_iterator{folder / part}) {
        if (entry.is_regular_file()) {
          files.emplace_back(fs::relative(entry.path(), folder).string(), read_file(entry.path()));
        }
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace muster::test
