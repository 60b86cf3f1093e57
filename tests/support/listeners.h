#pragma once

#include <string>
#include <vector>

namespace muster::test {

struct Listener {
  int fd = -1;
  std::string address;  ///< "127.0.0.1", "::"; empty for a socket that is not of IP.
  int port = 0;
};

/// The listening sockets of this process, by their descriptors. It asks the sockets themselves:
/// /proc/net/tcp is no snapshot, and may repeat or omit a line while other sockets come and go.
std::vector<Listener> listeners();

/// How many sockets of any kind this process has open.
int open_sockets();

}  // namespace muster::test
