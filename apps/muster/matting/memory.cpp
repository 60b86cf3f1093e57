#include "memory.h"

#include <malloc.h>

#include <algorithm>

namespace muster::app {

namespace {

constexpr int64_t mebi = int64_t{1} << 20U;
constexpr int64_t whole = 1536 * mebi;
constexpr int64_t kept = 128 * mebi;         // by all threads from one image to the next
constexpr int64_t freed = 64 * mebi;         // not given back by the C library
constexpr int64_t of_a_process = 24 * mebi;  // program, stacks, results

}  // namespace

MemoryPlan MemoryPlan::of(int ranks_on_host, int threads) {
  const int64_t share = (whole - kept - freed) / ranks_on_host - of_a_process;
  return {.of_rank = std::clamp(share, mebi, most_of_an_image),
          .kept_by_thread = kept / ranks_on_host / threads};
}

void limit_freed_memory(int ranks_on_host, int threads) {
  const int64_t share = freed / (2 * int64_t{ranks_on_host} * threads);
  const auto block = static_cast<int>(std::clamp(share, mebi / 8, 16 * mebi));
  mallopt(M_MMAP_THRESHOLD, block);
  mallopt(M_TRIM_THRESHOLD, 2 * block);
}

void MemoryGate::take(int64_t bytes) {
  std::unique_lock lock{mutex_};
  const uint64_t ticket = next_ticket_++;
  changed_.wait(lock, [&] { return serving_ == ticket && bytes <= left_; });
  left_ -= bytes;
  ++serving_;
  changed_.notify_all();
}

void MemoryGate::give_back(int64_t bytes) {
  {
    const std::lock_guard lock{mutex_};
    left_ += bytes;
  }
  changed_.notify_all();
}

}  // namespace muster::app
