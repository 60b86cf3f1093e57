#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "src/proc/descriptor_internal.h"

namespace muster::detail {

struct Pipe {
  Descriptor read{};
  Descriptor write{};
};

/// Both ends are closed on exec. Error of kind `output`.
Pipe make_pipe();

/// A socket that listens on 127.0.0.1 at `port` (0: any free one), closed on exec. Error of kind
/// `rendezvous`.
Descriptor listen_on_loopback(int port);

/// The port of a listening socket.
int port_of(const Descriptor& listener);

/// The file that `name` stands for, as a shell finds it. Error of kind `output`.
std::string find_program(const std::string& name);

struct SpawnRequest {
  std::string path{};  ///< file to execute
  std::vector<std::string> argv{};
  std::vector<std::string> environment{};  ///< NAME=VALUE
  std::vector<int> passed{};               ///< descriptors that stay open over exec
  int stdin_fd = -1;                       ///< becomes its stdin; -1 keeps that of this process
  sigset_t signal_mask{};                  ///< its blocked signals
};

/// Starts a process in a session of its own, killed when the calling thread ends. Returns once it
/// runs the program; Error of kind `output` with the system's reason when it does not.
pid_t spawn(const SpawnRequest& request);

}  // namespace muster::detail
