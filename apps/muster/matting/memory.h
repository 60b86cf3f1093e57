#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace muster::app {

/// How 1.5 GiB are shared, whatever headers claim: by the ranks of a host, and in a rank by its
/// threads. What an image needs is known from its headers before any of it is taken.
struct MemoryPlan {
  /// What one image may need at most; does not depend on ranks and threads, so that neither does
  /// which images are refused.
  static constexpr int64_t most_of_an_image = int64_t{1280} << 20U;

  int64_t of_rank = most_of_an_image;  ///< what the images of this rank may need at a time
  int64_t kept_by_thread = 0;          ///< what a thread may keep from one image to the next

  /// For a rank that is one of `ranks_on_host` and has `threads`.
  static MemoryPlan of(int ranks_on_host, int threads);
};

/// Tells the C library to give large blocks back, so that what is freed is free.
void limit_freed_memory(int ranks_on_host, int threads);

/// Hands out memory to threads, first come, first served: each asks once for all that it will need.
class MemoryGate {
 public:
  explicit MemoryGate(int64_t capacity) : capacity_{capacity}, left_{capacity} {}

  [[nodiscard]] int64_t capacity() const { return capacity_; }

  /// Holds `bytes`, at most the gate's capacity, as long as it lives.
  class Pass {
   public:
    Pass(MemoryGate& gate, int64_t bytes) : gate_{gate}, bytes_{bytes} { gate_.take(bytes_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { gate_.give_back(bytes_); }

   private:
    MemoryGate& gate_;
    int64_t bytes_;
  };

 private:
  void take(int64_t bytes);
  void give_back(int64_t bytes);

  std::mutex mutex_;
  std::condition_variable changed_;
  const int64_t capacity_;
  int64_t left_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;
};

}  // namespace muster::app
