#pragma once

#include <string>

namespace muster::detail {

/// Who listens at a TCP port of this host, as far as it can be seen: "process 4242 (python3)"; ""
/// where it cannot.
std::string port_holder(int port);

}  // namespace muster::detail
