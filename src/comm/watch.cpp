#include "src/comm/watch_internal.h"

#include <muster/base/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

namespace muster::detail {

namespace {

std::string time_of_day(double seconds_ago) {
  const std::time_t then = std::time(nullptr) - static_cast<std::time_t>(seconds_ago);
  std::tm local{};
  localtime_r(&then, &local);
  std::array<char, 16> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return {text.data(), length};
}

}  // namespace

Watch::Watch(int rank, int size, GroupOptions options)
    : rank_{rank}, options_{std::move(options)}, seen_(static_cast<size_t>(size)) {
  thread_ = std::thread{[this] { run(); }};
}

Watch::~Watch() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::begin(const Header& mine) {
  const std::lock_guard lock{mutex_};
  waiting_ = true;
  mine_ = mine;
  since_ = Clock::now();
  next_after_ = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>{options_.report_after});
}

void Watch::seen(const std::vector<Header>& headers) {
  const std::lock_guard lock{mutex_};
  std::copy(headers.begin(), headers.end(), seen_.begin());
}

void Watch::end() {
  const std::lock_guard lock{mutex_};
  waiting_ = false;
}

void Watch::run() {
  // Looks now and then, so that a collective which does not wait costs no wake-up.
  const std::chrono::duration<double> pause{std::max(options_.report_after / 8, 1e-3)};
  std::unique_lock lock{mutex_};
  while (!wake_.wait_for(lock, pause, [this] { return stop_; })) {
    const auto now = Clock::now();
    if (!waiting_ || now - since_ < next_after_) continue;
    next_after_ *= 2;
    const std::string text = line(now);
    lock.unlock();
    if (options_.report) {
      options_.report(text);
    } else {
      std::fputs((text + '\n').c_str(), stderr);
    }
    lock.lock();
  }
}

std::string Watch::line(Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - since_).count();
  std::string text =
      format("muster: rank {} has waited {:.3g} s, since {}, for {}; last seen:", rank_, seconds,
             time_of_day(seconds), describe(mine_));
  for (size_t rank = 0; rank < seen_.size(); ++rank) {
    if (rank == static_cast<size_t>(rank_)) continue;
    text += format(" [rank {}: {}]", rank,
                   seen_[rank] ? describe(*seen_[rank]) : std::string{"not yet"});
  }
  return text;
}

}  // namespace muster::detail
