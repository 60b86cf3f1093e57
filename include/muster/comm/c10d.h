#pragma once

#include <muster/comm/group.h>

#include <c10/util/intrusive_ptr.h>

#include <string>

namespace c10d {
class ProcessGroup;
}

namespace muster {

/// How this process finds the others of its job.
struct C10dOptions {
  /// 0 <= rank < size.
  int rank = 0;
  int size = 1;
  /// Where the store of the job is; a name or an address of rank 0's host.
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  /// A socket that listens at master_port, for rank 0, which takes it over; -1: rank 0 listens
  /// there itself.
  int store_fd = -1;
  /// Somebody else hosts the store (torchrun with TORCHELASTIC_USE_AGENT_STORE=True).
  bool agent_store = false;
  /// All ranks are on this host, so that they talk over loopback; a master on loopback implies it.
  bool one_host = false;
  /// Its digest goes before every key in the store; new for each job, and any text.
  std::string key_prefix = "muster";
  /// Seconds until all ranks must have found each other.
  double rendezvous_timeout = 60;
  /// Seconds that a collective waits for the slowest rank.
  double timeout = 600;
  /// Of the group that is made.
  GroupOptions group{};
};

/// The group of all processes of a job, over Gloo on a process group of its own. All ranks call it;
/// it returns when all have. Error of kind `rendezvous` when they do not find each other. A rank
/// whose peer is gone gets `peer_lost` with Gloo's text. Where all ranks are on one host, every
/// listening socket is on loopback.
///
/// After `peer_lost` the process should end by `_exit`: Gloo's threads then live on.
Group make_c10d_group(const C10dOptions& options);

/// Whether the group is of make_c10d_group and has two ranks or more.
[[nodiscard]] bool has_process_groups(const Group& group);

/// A further process group (Gloo, CPU) of the same processes, from the same store; for gradients.
/// Not a collective of the group, yet all ranks call it in the same order, each time with another
/// `name`. Error of kind `usage` when the group is not of make_c10d_group or has one rank.
c10::intrusive_ptr<c10d::ProcessGroup> make_process_group(const Group& group,
                                                          const std::string& name);

}  // namespace muster
