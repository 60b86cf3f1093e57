#include <muster/comm/tcp.h>

#include "src/comm/loss_internal.h"
#include "src/comm/sockets_internal.h"

#include <muster/base/check.h>
#include <muster/base/digest.h>

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace muster {

namespace {

using Clock = std::chrono::steady_clock;

std::string error_text() { return std::generic_category().message(errno); }

class Connection {
 public:
  Connection() = default;
  explicit Connection(int fd) : fd_{fd} {}
  Connection(Connection&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Connection() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// False when the other end is gone.
bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

bool receive_all(int fd, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    bytes = bytes.subspan(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return true;
}

/// What a rank says first, so that nobody else on this host is taken for one.
struct Hello {
  std::array<char, 16> greeting{'m', 'u', 's', 't', 'e', 'r', ' ', 't', 'c', 'p', ' ', '1'};
  std::array<char, 64> job{};
  int32_t rank = 0;
  int32_t size = 0;

  Hello() = default;
  explicit Hello(const TcpOptions& options) : rank{options.rank}, size{options.size} {
    sha256_hex(options.job).copy(job.data(), job.size());  // which may be of any length
  }
  [[nodiscard]] bool is_of_same_job(const Hello& other) const {
    return greeting == other.greeting && job == other.job && size == other.size;
  }
};

void set_receive_timeout(int fd, double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timeval limit{
      .tv_sec = whole,
      .tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * 1'000'000.0)};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/// Small messages go out at once, and a host that vanishes is noticed.
void tune(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  set_receive_timeout(fd, 0);
}

/// Rank 0's side: one connection of each other rank, by rank.
std::vector<Connection> accept_ranks(const TcpOptions& options, const std::string& master) {
  const Connection listener{options.store_fd >= 0 ? options.store_fd
                                                  : detail::listen_at(master, options.master_port)};
  const auto limit = Clock::now() + std::chrono::duration<double>{options.rendezvous_timeout};
  std::vector<Connection> ranks(static_cast<size_t>(options.size));
  for (int missing = options.size - 1; missing > 0;) {
    const std::chrono::duration<double, std::milli> left = limit - Clock::now();
    pollfd waiting{.fd = listener.fd(), .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max(0.0, left.count())));
    check(ready != 0, ErrorKind::rendezvous,
          "{} of the {} ranks did not come to {} port {} in {} seconds", missing, options.size,
          master, options.master_port, options.rendezvous_timeout);
    Connection connection{accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!connection.is_open()) continue;
    // A stranger that says nothing must not hold up the ranks.
    set_receive_timeout(connection.fd(), 2);
    Hello hello;
    std::array<char, sizeof(Hello)> bytes{};
    if (!receive_all(connection.fd(), bytes)) continue;
    std::memcpy(&hello, bytes.data(), sizeof hello);
    const bool known = hello.is_of_same_job(Hello{options}) && hello.rank > 0 &&
                       hello.rank < options.size &&
                       !ranks[static_cast<size_t>(hello.rank)].is_open();
    if (!known) continue;
    tune(connection.fd());
    ranks[static_cast<size_t>(hello.rank)] = std::move(connection);
    --missing;
  }
  return ranks;
}

/// Another rank's side. Rank 0 may not listen yet.
Connection connect_to_rank_0(const TcpOptions& options, const std::string& master) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int rc =
      getaddrinfo(master.c_str(), std::to_string(options.master_port).c_str(), &hints, &list);
  check(rc == 0, ErrorKind::rendezvous, "{} port {} is no address: {}", master, options.master_port,
        gai_strerror(rc));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> address{list, &freeaddrinfo};
  const auto limit = Clock::now() + std::chrono::duration<double>{options.rendezvous_timeout};
  while (true) {
    Connection connection{socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (connection.is_open() && connect(connection.fd(), list->ai_addr, list->ai_addrlen) == 0) {
      const Hello hello{options};
      std::array<char, sizeof(Hello)> bytes{};
      std::memcpy(bytes.data(), &hello, sizeof hello);
      if (send_all(connection.fd(), {bytes.data(), bytes.size()})) {
        tune(connection.fd());
        return connection;
      }
    }
    check(Clock::now() < limit, ErrorKind::rendezvous,
          "rank {} of {} did not find rank 0 at {} port {}: {}", options.rank, options.size, master,
          options.master_port, error_text());
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
}

/// Every rank's bytes go to rank 0, which sends all of them to every rank.
class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const TcpOptions& options) : rank_{options.rank}, size_{options.size} {
    const std::string master =
        options.one_host ? "127.0.0.1" : detail::resolve(options.master_addr);
    if (rank_ == 0) {
      peers_ = accept_ranks(options, master);
    } else {
      peers_.push_back(connect_to_rank_0(options, master));
    }
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  std::vector<std::string> exchange(std::string_view mine) override {
    const std::vector<int64_t> sizes(static_cast<size_t>(size_), static_cast<int64_t>(mine.size()));
    return exchange(mine, sizes);
  }

  std::vector<std::string> exchange(std::string_view mine,
                                    std::span<const int64_t> sizes) override {
    loss_.check_none();
    std::vector<std::string> all;
    for (const int64_t size : sizes) all.emplace_back(static_cast<size_t>(size), '\0');
    if (rank_ == 0) {
      all[0] = mine;
      for (size_t r = 1; r < all.size(); ++r) receive(peers_[r].fd(), all[r], static_cast<int>(r));
      std::string together;
      for (const auto& bytes : all) together += bytes;
      for (size_t r = 1; r < all.size(); ++r) send(peers_[r].fd(), together, static_cast<int>(r));
    } else {
      send(peers_[0].fd(), mine, 0);
      for (auto& bytes : all) receive(peers_[0].fd(), bytes, 0);
    }
    return all;
  }

  void abort(const std::string& reason) override {
    loss_.note("this rank has given up: " + reason);
    for (const auto& peer : peers_) {
      if (peer.is_open()) shutdown(peer.fd(), SHUT_RDWR);
    }
  }

 private:
  void send(int fd, std::string_view bytes, int other) {
    if (!send_all(fd, bytes)) loss_.note(format("rank {} is gone", other));
    loss_.check_none();
  }

  void receive(int fd, std::string& bytes, int other) {
    if (!receive_all(fd, bytes)) loss_.note(format("rank {} is gone", other));
    loss_.check_none();
  }

  int rank_;
  int size_;
  std::vector<Connection> peers_{};  // rank 0: by rank, its own place empty; others: rank 0
  detail::Loss loss_{};
};

}  // namespace

Group make_tcp_group(const TcpOptions& options) {
  check(options.size >= 1 && options.rank >= 0 && options.rank < options.size,
        "rank {} is not below the number of ranks, {}", options.rank, options.size);
  if (options.size == 1) return Group::self();
  return Group{std::make_unique<TcpTransport>(options), options.group};
}

}  // namespace muster
