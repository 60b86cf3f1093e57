#pragma once

#include <functional>
#include <future>

namespace muster {

/// Runs the writing of checkpoints one after another: at once, or on a thread beside the training,
/// one at a time. One thread uses it.
class CheckpointSaver {
 public:
  explicit CheckpointSaver(bool beside) : beside_{beside} {}
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;
  /// Waits; an error that nobody has asked for is told on standard error.
  ~CheckpointSaver();

  /// Waits for the one before. `write` owns what it writes. Throws what the one before, or this one
  /// where it runs at once, has thrown.
  void save(std::function<void()> write);
  /// Throws what a writing that has ended has thrown, without waiting.
  void poll();
  void wait();

 private:
  bool beside_;
  std::future<void> running_{};
};

}  // namespace muster
