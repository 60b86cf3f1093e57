#include "src/comm/sockets_internal.h"

#include <muster/base/check.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace muster::detail {

namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const std::string& host, const char* service, int type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(host.c_str(), service, &hints, &list);
  check(rc == 0, ErrorKind::rendezvous,
        "the master's host '{}' has no address ({}); MASTER_ADDR must be a name or an address that "
        "this host can look up",
        host, gai_strerror(rc));
  return Addresses{list};
}

std::string text_of(const sockaddr* address, socklen_t length) {
  std::string text(NI_MAXHOST, '\0');
  const int rc = getnameinfo(address, length, text.data(), static_cast<socklen_t>(text.size()),
                             nullptr, 0, NI_NUMERICHOST);
  check(rc == 0, ErrorKind::rendezvous, "an address cannot be written as text: {}",
        gai_strerror(rc));
  text.resize(text.find('\0'));
  return text;
}

std::string error_text() { return std::generic_category().message(errno); }

class Socket {
 public:
  Socket(int family, int type) : fd_{socket(family, type | SOCK_CLOEXEC, 0)} {
    check(fd_ >= 0, ErrorKind::rendezvous, "a socket cannot be made: {}", error_text());
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// 0.0.0.0 and :: stand for every address of a host, whatever network that is on.
bool is_wildcard(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == htonl(INADDR_ANY);
  }
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr.s6_addr;
  const bool is_mapped = IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(ipv6));
  return address->sa_family == AF_INET6 &&
         std::all_of(ipv6 + (is_mapped ? 12 : 0), ipv6 + 16, [](auto byte) { return byte == 0; });
}

std::string address_text(const std::string& host, const addrinfo& address) {
  check(!is_wildcard(address.ai_addr),
        "MASTER_ADDR={} is no address of a host: anybody who reaches this host on any network "
        "could join the job; name one, 127.0.0.1 for ranks of one host",
        host);
  return text_of(address.ai_addr, address.ai_addrlen);
}

}  // namespace

std::string resolve(const std::string& host) {
  // This name means loopback by RFC 6761, also on a machine whose tables lack it.
  if (host == "localhost") {
    return "127.0.0.1";
  }
  const auto list = addresses_of(host, nullptr, SOCK_STREAM);
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET) return address_text(host, *a);
  }
  return address_text(host, *list);
}

bool is_loopback(const std::string& address) {
  in_addr ipv4{};
  if (inet_pton(AF_INET, address.c_str(), &ipv4) == 1) return (ntohl(ipv4.s_addr) >> 24) == 127;
  return address == "::1";
}

std::string local_address_towards(const std::string& remote) {
  // Connecting a datagram socket only picks the route; any port does.
  const auto list = addresses_of(remote, "9", SOCK_DGRAM);
  const Socket probe{list->ai_family, SOCK_DGRAM};
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const bool ok = connect(probe.fd(), list->ai_addr, list->ai_addrlen) == 0 &&
                  getsockname(probe.fd(), address, &length) == 0;
  check(ok, ErrorKind::rendezvous, "no interface of this host leads to the master at {}: {}",
        remote, error_text());
  return text_of(address, length);
}

int listen_at(const std::string& address, int port) {
  const auto list = addresses_of(address, std::to_string(port).c_str(), SOCK_STREAM);
  Socket listener{list->ai_family, SOCK_STREAM};
  const int on = 1;
  constexpr int backlog = 1024;
  const bool ok = setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                  bind(listener.fd(), list->ai_addr, list->ai_addrlen) == 0 &&
                  listen(listener.fd(), backlog) == 0;
  check(ok, ErrorKind::rendezvous,
        "rank 0 cannot listen at {} port {}: {}; MASTER_ADDR must be an address of rank 0's host "
        "and MASTER_PORT a free port",
        address, port, error_text());
  return listener.release();
}

namespace {

/// One attempt, for at most 200 ms; "" when it came through.
std::string try_to_connect(const addrinfo& to) {
  constexpr int patience_ms = 200;
  const Socket probe{to.ai_family, SOCK_STREAM | SOCK_NONBLOCK};
  if (connect(probe.fd(), to.ai_addr, to.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return error_text();
  pollfd waiting{.fd = probe.fd(), .events = POLLOUT, .revents = 0};
  if (poll(&waiting, 1, patience_ms) <= 0) return "no answer";
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(probe.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "" : std::generic_category().message(error);
}

}  // namespace

void wait_for_listener(const std::string& address, int port,
                       const std::function<void(const std::string& reason)>& until) {
  const auto list = addresses_of(address, std::to_string(port).c_str(), SOCK_STREAM);
  for (std::string reason = try_to_connect(*list); !reason.empty();
       reason = try_to_connect(*list)) {
    until(reason);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
}

namespace {

std::set<int> open_sockets() {
  std::set<int> sockets;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator{"/proc/self/fd", error};
       !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
    const int fd = std::atoi(entry->path().filename().c_str());
    struct stat about {};
    if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) sockets.insert(fd);
  }
  return sockets;
}

}  // namespace

SocketsClosedOnExec::SocketsClosedOnExec() : before_{open_sockets()} {}

SocketsClosedOnExec::~SocketsClosedOnExec() {
  for (const int fd : open_sockets()) {
    if (!before_.contains(fd)) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

}  // namespace muster::detail
