#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <muster/base/check.h>
#include <muster/data/prefetch.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace muster {

namespace {

struct Slot {
  bool ready = false;
  std::shared_ptr<void> item{};
  std::exception_ptr error{};
};

}  // namespace

struct Prefetch::State {
  State(int64_t items, Make maker, const PrefetchOptions& options)
      : count{items},
        make{std::move(maker)},
        slots(static_cast<size_t>(options.ahead)),
        end{items} {}

  ~State() {
    {
      const std::lock_guard lock{mutex};
      cancelled = true;
    }
    room.notify_all();
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Grad mode belongs to a thread: the caller's must not decide what a data set computes.
  Slot made(int64_t position) noexcept {
    const c10::InferenceMode normal_tensors{false};
    const c10::AutoGradMode no_grad{false};
    try {
      return {true, make(position, cancelled), nullptr};
    } catch (...) {
      return {true, nullptr, std::current_exception()};
    }
  }

  Slot& slot(int64_t position) { return slots[static_cast<size_t>(position) % slots.size()]; }

  void work() {
    std::unique_lock lock{mutex};
    while (true) {
      room.wait(lock, [this] { return cancelled || begun >= end || begun - given < ahead(); });
      if (cancelled || begun >= end) {
        return;
      }
      const int64_t position = begun++;
      lock.unlock();
      Slot result = made(position);
      lock.lock();
      if (result.error || result.item == nullptr) {
        end = std::min(end, position + 1);
        room.notify_all();
      }
      slot(position) = std::move(result);
      ready.notify_one();
    }
  }

  Slot take() {
    if (threads.empty()) {
      return made(given);
    }
    std::unique_lock lock{mutex};
    Slot& mine = slot(given);
    ready.wait(lock, [&mine] { return mine.ready; });
    return std::exchange(mine, {});
  }

  [[nodiscard]] int64_t ahead() const { return static_cast<int64_t>(slots.size()); }

  const int64_t count;
  const Make make;
  std::atomic<bool> cancelled = false;
  /// What `next` threw; the caller's thread alone uses it.
  std::exception_ptr failure;
  /// Whether an item was null; the caller's thread alone uses it.
  bool ended = false;

  std::mutex mutex;
  std::condition_variable room;
  std::condition_variable ready;
  std::vector<Slot> slots;
  int64_t begun = 0;
  int64_t given = 0;
  /// Where the threads stop: at `count`, or behind the first item that has failed or was null.
  int64_t end;
  std::vector<std::thread> threads;
};

Prefetch::Prefetch(int64_t count, Make make, const PrefetchOptions& options) {
  check(options.workers >= 0, "num_workers must be at least 0, found {}", options.workers);
  check(options.ahead >= 1, "prefetch must be at least 1, found {}", options.ahead);
  state_ = std::make_unique<State>(count, std::move(make), options);
  const int64_t threads = std::min({int64_t{options.workers}, options.ahead, count});
  for (int64_t i = 0; i < threads; ++i) {
    state_->threads.emplace_back([state = state_.get()] { state->work(); });
  }
}

Prefetch::~Prefetch() = default;
Prefetch::Prefetch(Prefetch&& other) noexcept = default;
Prefetch& Prefetch::operator=(Prefetch&& other) noexcept = default;

std::shared_ptr<void> Prefetch::next() {
  State& state = *state_;
  if (state.failure) {
    std::rethrow_exception(state.failure);
  }
  if (state.ended || state.given >= state.count) {
    return nullptr;
  }
  Slot slot = state.take();
  if (slot.item == nullptr && !slot.error) {
    state.ended = true;
    return nullptr;
  }
  if (slot.error) {
    state.failure = slot.error;
    std::rethrow_exception(slot.error);
  }
  {
    const std::lock_guard lock{state.mutex};
    ++state.given;
  }
  state.room.notify_one();
  return slot.item;
}

}  // namespace muster
