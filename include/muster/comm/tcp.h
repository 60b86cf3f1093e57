#pragma once

#include <muster/comm/group.h>

#include <string>

namespace muster {

/// How this process finds the others of its job.
struct TcpOptions {
  /// 0 <= rank < size.
  int rank = 0;
  int size = 1;
  /// Where rank 0 listens; a name or an address of its host.
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  /// A socket that listens at master_port, for rank 0, which takes it over; -1: rank 0 listens
  /// there itself.
  int store_fd = -1;
  /// All ranks are on this host, so that they talk over loopback.
  bool one_host = false;
  /// Tells this job from others; the same on all ranks.
  std::string job{};
  /// Seconds until all ranks must have found each other.
  double rendezvous_timeout = 60;
  /// Of the group that is made.
  GroupOptions group{};
};

/// The group of all processes of a job over plain sockets, through rank 0: for programs without
/// torch, which start in milliseconds, and payloads that are small. All ranks call it; it returns
/// when all have. A collective waits without a limit; a rank that ends is `peer_lost` on the
/// others. Error of kind `rendezvous` when the ranks do not find each other.
Group make_tcp_group(const TcpOptions& options);

}  // namespace muster
