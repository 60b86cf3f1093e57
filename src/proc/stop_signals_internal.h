#pragma once

#include <csignal>

#include "src/proc/descriptor_internal.h"

namespace muster::detail {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGUSR1 wait to be read instead of ending the
/// process (those that are ignored stay ignored), SIGPIPE is harmless and children can be waited
/// for. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable when a signal waits.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The next of them, 0 when none waits.
  [[nodiscard]] int take() const;
  /// The mask that processes started now must get back.
  [[nodiscard]] const sigset_t& mask_before() const { return mask_before_; }

 private:
  sigset_t mask_before_{};
  struct sigaction child_before_ {};
  Descriptor descriptor_;
};

}  // namespace muster::detail
