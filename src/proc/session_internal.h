#pragma once

#include <sys/types.h>

namespace muster::detail {

/// Whether a process of the session lives; zombies do not.
bool session_lives(pid_t session);

}  // namespace muster::detail
