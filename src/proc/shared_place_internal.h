#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "src/proc/descriptor_internal.h"

namespace muster::detail {

/// What report_place writes, and what the launcher says to the rank. The launcher may read it while
/// it is written, and then shows numbers of two moments.
struct PlaceMemory {
  std::atomic<uint64_t> what[2];  ///< up to 15 characters, the rest zeros
  std::atomic<int64_t> epoch;
  std::atomic<int64_t> step;
  std::atomic<int64_t> batch;
  std::atomic<int64_t> stop_signal;  ///< the launcher's: that it was told to stop by, or 0
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

/// Memory of one rank that the launcher shares with it. Where the system gives none, it is empty.
class SharedPlace {
 public:
  SharedPlace();
  SharedPlace(SharedPlace&& other) noexcept;
  SharedPlace& operator=(SharedPlace&& other) noexcept;
  SharedPlace(const SharedPlace&) = delete;
  SharedPlace& operator=(const SharedPlace&) = delete;
  ~SharedPlace();

  /// To be passed on; -1 for none.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// No rank is going to be given it any more.
  void close_descriptor() { descriptor_.reset(); }
  /// Before the rank is sent SIGTERM because of it.
  void tell_stop_signal(int signal);
  /// "fit, epoch 1, step 5, batch 10"; "" when the rank has written nothing.
  [[nodiscard]] std::string text() const;

 private:
  Descriptor descriptor_{};
  PlaceMemory* memory_ = nullptr;
};

/// The memory that this process has inherited (MUSTER_PLACE_FD), nullptr for none.
PlaceMemory* inherited_place();

}  // namespace muster::detail
