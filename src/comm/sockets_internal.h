#pragma once

#include <functional>
#include <set>
#include <string>

namespace muster::detail {

/// The first IPv4 address of a host name, or the first IPv6 one where it has none, as text. Error
/// of kind `rendezvous` when it has no address, `usage` when it stands for all of a host's.
std::string resolve(const std::string& host);

/// Whether an address that `resolve` gave is of this host alone.
bool is_loopback(const std::string& address);

/// The address of this host from which `remote` is reached. Sends nothing.
std::string local_address_towards(const std::string& remote);

/// A socket that listens at that address only; closed on exec. Error of kind `rendezvous`.
int listen_at(const std::string& address, int port);

/// Returns once somebody listens at that address. `until` is asked now and then: it throws when the
/// wait is to end. It is told what connecting says: "Connection refused".
void wait_for_listener(const std::string& address, int port,
                       const std::function<void(const std::string& reason)>& until);

/// The sockets that others open while it lives are closed on exec: a program that a rank starts and
/// leaves behind would keep its connections open, and the other ranks would wait for it.
class SocketsClosedOnExec {
 public:
  SocketsClosedOnExec();
  SocketsClosedOnExec(const SocketsClosedOnExec&) = delete;
  SocketsClosedOnExec& operator=(const SocketsClosedOnExec&) = delete;
  ~SocketsClosedOnExec();

 private:
  std::set<int> before_;
};

}  // namespace muster::detail
