#include "support/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace muster::test {

namespace {

std::vector<int> sockets() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    const int fd = std::stoi(entry.path().filename());
    int kind = 0;
    socklen_t size = sizeof kind;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) == 0) {
      found.push_back(fd);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool listens(int fd) {
  int listening = 0;
  socklen_t size = sizeof listening;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

Listener describe(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&address);
    inet_ntop(AF_INET, &four->sin_addr, text.data(), text.size());
    return {fd, text.data(), ntohs(four->sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &six->sin6_addr, text.data(), text.size());
    return {fd, text.data(), ntohs(six->sin6_port)};
  }
  return {fd, "", 0};
}

}  // namespace

std::vector<Listener> listeners() {
  std::vector<Listener> found;
  for (const int fd : sockets()) {
    if (listens(fd)) {
      found.push_back(describe(fd));
    }
  }
  return found;
}

int open_sockets() { return static_cast<int>(sockets().size()); }

}  // namespace muster::test
