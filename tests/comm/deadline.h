#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace muster::test {

/// Ends the process when a test that must not hang does.
class Deadline {
 public:
  explicit Deadline(std::chrono::seconds limit, std::string what)
      : thread_{[this, limit, what = std::move(what)] {
          std::unique_lock lock{mutex_};
          if (met_.wait_for(lock, limit, [this] { return done_; })) return;
          std::fprintf(stderr, "%s hangs\n", what.c_str());
          std::_Exit(1);
        }} {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() {
    {
      const std::lock_guard lock{mutex_};
      done_ = true;
    }
    met_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_{};
  std::condition_variable met_{};
  bool done_ = false;
  std::thread thread_;
};

}  // namespace muster::test
