#pragma once

#include "src/comm/header_internal.h"

#include <muster/comm/group.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace muster::detail {

/// Says, from a thread of its own, that this rank waits for others, and where those were last seen.
class Watch {
 public:
  Watch(int rank, int size, GroupOptions options);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  void begin(const Header& mine);
  void seen(const std::vector<Header>& headers);
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  std::string line(Clock::time_point now) const;

  const int rank_;
  const GroupOptions options_;
  mutable std::mutex mutex_{};
  std::condition_variable wake_{};
  bool stop_ = false;
  bool waiting_ = false;
  Header mine_{};
  Clock::time_point since_{};
  Clock::duration next_after_{};
  std::vector<std::optional<Header>> seen_;
  std::thread thread_{};
};

}  // namespace muster::detail
