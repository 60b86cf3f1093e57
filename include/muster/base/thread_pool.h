#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace muster {

/// Threads that run tasks in the order they were given. At most `max_waiting` tasks wait: `submit`
/// blocks beyond that, so that a producer cannot run away from its workers. All members may be
/// called from any thread but those of the pool. The destructor runs what waits, then joins.
class ThreadPool {
 public:
  /// Both at least 1.
  explicit ThreadPool(int threads, size_t max_waiting = 64);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Runs `task` on a thread of the pool; its result or exception comes through the future.
  template <typename Task>
  auto submit(Task&& task) -> std::future<std::invoke_result_t<std::decay_t<Task>>> {
    using Result = std::invoke_result_t<std::decay_t<Task>>;
    auto job = std::make_shared<std::packaged_task<Result()>>(std::forward<Task>(task));
    auto result = job->get_future();
    enqueue([job] { (*job)(); });
    return result;
  }

  [[nodiscard]] int threads() const;

 private:
  struct State;
  void enqueue(std::function<void()> job);

  std::unique_ptr<State> state_;
};

/// How many threads a rank's pools may have: the cores this process may run on (affinity, and the
/// CPU quota of its control group), divided among the `ranks_on_host`, at least 1.
int cores_for_rank(int ranks_on_host);

}  // namespace muster
