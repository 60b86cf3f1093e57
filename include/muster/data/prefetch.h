#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace muster {

struct PrefetchOptions {
  /// Threads that make items; 0 makes each in the caller's thread when it is asked for.
  int workers = 2;
  /// Items made or under way at most, those already handed out not counted.
  int64_t ahead = 4;
};

/// Makes items 0, 1, ..., count - 1 ahead of their use on threads of its own and hands them out in
/// that order, up to the first null one. The destructor cancels what has not begun, waits for what
/// has, and joins. One thread uses it at a time.
class Prefetch {
 public:
  /// Makes item `position`; called by several threads at once, without gradients. Null ends the
  /// items. Once `cancelled` is true the result is not wanted, and it may return null early.
  using Make =
      std::function<std::shared_ptr<void>(int64_t position, const std::atomic<bool>& cancelled)>;

  /// Starts the threads. Error of kind `usage` for fewer than 0 workers or less than 1 ahead.
  Prefetch(int64_t count, Make make, const PrefetchOptions& options);
  ~Prefetch();
  Prefetch(Prefetch&& other) noexcept;
  Prefetch& operator=(Prefetch&& other) noexcept;

  /// The next item; null after the last. What making it threw is thrown here, at its place in the
  /// order and at every later call, and nothing after it is made.
  std::shared_ptr<void> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster
