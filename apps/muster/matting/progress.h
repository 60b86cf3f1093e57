#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace muster::app {

/// How far a long command is: a bar on a terminal, elsewhere a line now and then, after longer and
/// longer pauses. A short command shows nothing.
class Progress {
 public:
  Progress(std::FILE* out, std::string what, int64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Leaves no bar behind.
  ~Progress();

  void show(int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::string line(int64_t done, size_t width) const;

  std::FILE* out_;
  std::string what_;
  int64_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
  Clock::duration gap_;
};

}  // namespace muster::app
