#pragma once

#include <exception>
#include <functional>
#include <future>

namespace muster {

/// Runs the writing of checkpoints one after another: at once, or on a thread beside the training,
/// one at a time. What one throws is thrown again at the next call; or it is told on standard
/// error, and thrown by `finish` alone, if no later one has gone well. One thread uses it.
class CheckpointSaver {
 public:
  CheckpointSaver(bool beside, bool stops) : beside_{beside}, stops_{stops} {}
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;
  /// Waits; an error that nobody has asked for is told on standard error.
  ~CheckpointSaver();

  /// Waits for the one before. `write` owns what it writes.
  void save(std::function<void()> write);
  /// Looks whether a writing has ended, without waiting.
  void poll();
  /// Waits for the last one.
  void finish();

 private:
  void wait();
  /// Runs what may throw.
  void attempt(const std::function<void()>& write);

  bool beside_;
  bool stops_;
  std::exception_ptr failure_{};  ///< of the last one
  std::future<void> running_{};
};

}  // namespace muster
