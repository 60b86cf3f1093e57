#include "tests/comm/deadline.h"
#include "tests/comm/random_program.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/comm/tcp.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace muster::test {
namespace {

using std::chrono::seconds;

struct Listener {
  Listener() : fd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd, generic, length) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, generic, &length) != 0) {
      throw std::runtime_error{"cannot listen on loopback"};
    }
    port = ntohs(address.sin_port);
  }
  int fd = -1;
  int port = 0;
};

TcpOptions options_of(int rank, int size, const Listener& listener) {
  return {.rank = rank,
          .size = size,
          .master_port = listener.port,
          .store_fd = rank == 0 ? listener.fd : -1,
          .job = "a job",
          .rendezvous_timeout = 20};
}

/// Runs `body` once a rank, each on a thread with sockets of its own.
void run_ranks(int size, const std::function<void(Group&)>& body) {
  const Listener listener;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Group group = make_tcp_group(options_of(rank, size, listener));
      body(group);
    });
  }
  for (auto& thread : threads) thread.join();
}

/// The error kind of what `body` throws, or nothing.
std::optional<ErrorKind> kind_of(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    return error.kind();
  }
}

TEST(TcpGroup, RunsRandomProgramsAsASimulationSays) {
  const Deadline deadline{seconds{100}, "a valid program"};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 4);
    const Program program = ProgramMaker{seed}.valid(ranks);
    std::atomic<int> wrong{0};
    run_ranks(ranks, [&](Group& group) { wrong += run_rank(group, program); });
    ASSERT_EQ(wrong.load(), 0) << "seed " << seed;
  }
}

TEST(TcpGroup, CarriesLargeAndEmptyPayloads) {
  const Deadline deadline{seconds{60}, "a large payload"};
  run_ranks(3, [](Group& group) {
    const std::string mine(group.rank() == 1 ? 0 : 5'000'000 + group.rank(), 'x');
    const auto all = group.all_gather(mine);
    EXPECT_EQ(all.at(0).bytes.size(), 5'000'000U);
    EXPECT_EQ(all.at(1).bytes.size(), 0U);
    EXPECT_EQ(all.at(2).bytes.size(), 5'000'002U);
    group.finish();
  });
}

TEST(TcpGroup, ARankThatLeavesIsLostToTheOthers) {
  const Deadline deadline{seconds{60}, "a lost rank"};
  run_ranks(3, [](Group& group) {
    group.barrier();
    if (group.rank() == 2) return;
    EXPECT_EQ(kind_of([&] { group.barrier(); }), ErrorKind::peer_lost) << group.rank();
  });
}

TEST(TcpGroup, ARankThatGivesUpIsLostToTheOthers) {
  const Deadline deadline{seconds{60}, "an abort"};
  run_ranks(2, [](Group& group) {
    group.barrier();
    if (group.rank() == 1) group.abort("no more");
    EXPECT_EQ(kind_of([&] { group.barrier(); }), ErrorKind::peer_lost) << group.rank();
  });
}

TEST(TcpGroup, PassesOverStrangersAtItsPort) {
  const Deadline deadline{seconds{60}, "a stranger"};
  const Listener listener;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(listener.port));
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string greeting(200, 'G');
  ASSERT_EQ(send(stranger, greeting.data(), greeting.size(), 0), 200);
  const auto meet = [&](int rank) {
    Group group = make_tcp_group(options_of(rank, 2, listener));
    EXPECT_EQ(group.broadcast(rank == 0 ? "hello" : "", 0), "hello");
  };
  std::thread other{meet, 1};
  meet(0);
  other.join();
  close(stranger);
}

TEST(TcpGroup, RanksThatDoNotComeAreARendezvousErrorInTime) {
  const Deadline deadline{seconds{60}, "a missing rank"};
  const Listener listener;
  auto options = options_of(0, 2, listener);
  options.rendezvous_timeout = 0.2;
  EXPECT_EQ(kind_of([&] { make_tcp_group(options); }), ErrorKind::rendezvous);
  options = options_of(1, 2, Listener{});
  options.rendezvous_timeout = 0.2;
  options.master_port = 1;
  EXPECT_EQ(kind_of([&] { make_tcp_group(options); }), ErrorKind::rendezvous);
}

}  // namespace
}  // namespace muster::test
