#pragma once

namespace muster::detail {

/// From here on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write the stack of their thread to the
/// launcher, or to stderr where there is none, before they end the process as usual. A handler that
/// is there already (a sanitizer's) stays.
void install_crash_report();

}  // namespace muster::detail
