#include "dist/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

namespace muster::test {

Listener::Listener() : fd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, length) != 0 || listen(fd, 16) != 0 ||
      getsockname(fd, generic, &length) != 0) {
    throw std::runtime_error{"cannot listen on loopback"};
  }
  port = ntohs(address.sin_port);
}

Listener::~Listener() { close(fd); }

Child::Child(const std::vector<std::string>& arguments,
             const std::map<std::string, std::string>& environment, int inherited)
    : output_{memfd_create("output", MFD_CLOEXEC)} {
  std::vector<std::string> variables;
  variables.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    variables.emplace_back(name).append("=").append(value);
  }
  std::vector<char*> envp;
  envp.reserve(variables.size() + 1);
  for (auto& variable : variables) envp.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
  envp.push_back(nullptr);
  std::vector<std::string> texts = arguments;
  std::vector<char*> argv;
  argv.reserve(texts.size() + 1);
  for (auto& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output_, 1);
  posix_spawn_file_actions_adddup2(&actions, output_, 2);
  // Onto itself: that clears its close-on-exec.
  if (inherited >= 0) posix_spawn_file_actions_adddup2(&actions, inherited, inherited);
  const int failed = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error{"cannot start " + arguments.at(0)};
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(output_);
}

Ended Child::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  pid_ = -1;
  Ended ended{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
  ended.output.resize(static_cast<size_t>(lseek(output_, 0, SEEK_END)));
  const auto read = pread(output_, ended.output.data(), ended.output.size(), 0);
  ended.output.resize(read < 0 ? 0 : static_cast<size_t>(read));
  return ended;
}

std::vector<Ended> run_ranks(const std::vector<std::string>& arguments, int size,
                             const std::map<std::string, std::string>& more) {
  std::vector<std::unique_ptr<Child>> children;
  {
    const Listener listener;
    for (int rank = 0; rank < size; ++rank) {
      std::map<std::string, std::string> environment{
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(listener.port)}};
      environment.insert(more.begin(), more.end());
      if (rank == 0) environment["STORE_FD"] = std::to_string(listener.fd);
      children.push_back(
          std::make_unique<Child>(arguments, environment, rank == 0 ? listener.fd : -1));
    }
  }
  std::vector<Ended> all;
  all.reserve(children.size());
  for (auto& child : children) all.push_back(child->wait());
  return all;
}

}  // namespace muster::test
