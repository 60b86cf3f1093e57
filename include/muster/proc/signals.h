#pragma once

namespace muster {

/// From here on SIGTERM, SIGINT, SIGHUP and SIGUSR1 only set a flag, which loops poll. A second
/// SIGINT ends the process as usual. SIGINT and SIGHUP stay ignored where they were (nohup,
/// background jobs).
void install_stop_signals();

/// The signal that asks for a stop, 0 when none came. The first one counts, but SIGUSR1 (save)
/// gives way to the others. Any thread.
int stop_signal();

/// Whether any came. Any thread.
bool stop_requested();

}  // namespace muster
