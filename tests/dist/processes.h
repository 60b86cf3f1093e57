#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

/// Starts real processes for tests. The parent stays without threads of its own, and nothing is
/// forked after torch has made any: children are executed anew.
namespace muster::test {

/// A listening socket on loopback.
struct Listener {
  Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();
  int fd = -1;
  int port = 0;
};

struct Ended {
  int exit_code = 0;  ///< 128 + n for a signal n
  std::string output{};
};

/// One child; its stdout and stderr go to a file that is read when it ended.
class Child {
 public:
  /// `inherited` >= 0 is a descriptor that stays open in the child, under the same number.
  Child(const std::vector<std::string>& arguments,
        const std::map<std::string, std::string>& environment, int inherited = -1);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();
  /// Waits; after `limit` the child is killed.
  Ended wait(std::chrono::milliseconds limit = std::chrono::seconds{60});

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

/// Runs a program on `size` ranks with the environment of torchrun and `more`; the socket of the
/// store is passed to rank 0 as STORE_FD.
std::vector<Ended> run_ranks(const std::vector<std::string>& arguments, int size,
                             const std::map<std::string, std::string>& more = {});

}  // namespace muster::test
