#pragma once

namespace muster {

/// From here on SIGTERM, SIGINT, SIGHUP and SIGUSR1 only set a flag, which loops poll. A second
/// SIGINT ends the process as usual. SIGINT and SIGHUP stay ignored where they were (nohup,
/// background jobs).
void install_stop_signals();

/// The signal that asks for a stop, 0 when none came; the first one counts. Never SIGUSR1. Any
/// thread.
int stop_signal();

/// Whether a signal asks for a stop. Any thread.
bool stop_requested();

/// Whether SIGUSR1 has asked to save since the last call. Any thread.
bool take_save_request();

}  // namespace muster
