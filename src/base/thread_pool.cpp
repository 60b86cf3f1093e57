#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/thread_pool.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sched.h>

namespace muster {

struct ThreadPool::State {
  explicit State(size_t most) : max_waiting{most} {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    {
      const std::lock_guard lock{mutex};
      closing = true;
    }
    work.notify_all();
    for (auto& worker : workers) {
      worker.join();
    }
  }

  void run() {
    std::unique_lock lock{mutex};
    while (true) {
      work.wait(lock, [&] { return closing || !waiting.empty(); });
      if (waiting.empty()) {
        return;
      }
      auto job = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      room.notify_one();
      job();
      job = nullptr;
      lock.lock();
    }
  }

  const size_t max_waiting;
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable room;
  std::deque<std::function<void()>> waiting;
  bool closing = false;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int threads, size_t max_waiting)
    : state_{std::make_unique<State>(max_waiting)} {
  check(threads >= 1, "a thread pool needs at least one thread, not {}", threads);
  check(max_waiting >= 1, "a thread pool must let at least one task wait");
  state_->workers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    state_->workers.emplace_back([state = state_.get()] { state->run(); });
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()); }

void ThreadPool::enqueue(std::function<void()> job) {
  const auto self = std::this_thread::get_id();
  check(std::none_of(state_->workers.begin(), state_->workers.end(),
                     [&](const std::thread& worker) { return worker.get_id() == self; }),
        "a task of a thread pool cannot submit another to its own pool: it could wait for itself");
  {
    std::unique_lock lock{state_->mutex};
    state_->room.wait(lock, [&] { return state_->waiting.size() < state_->max_waiting; });
    state_->waiting.push_back(std::move(job));
  }
  state_->work.notify_one();
}

namespace {

/// The cores this process may be scheduled on.
int schedulable_cores() {
  for (int limit = 1024; limit <= (1 << 20); limit *= 4) {
    cpu_set_t* set = CPU_ALLOC(limit);
    if (set == nullptr) {
      break;
    }
    const size_t bytes = CPU_ALLOC_SIZE(limit);
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const int cores = ok ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (ok) {
      return std::max(1, cores);
    }
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// What a `cpu.max` file of a control group allows ("200000 100000" is 2 cores), or `otherwise`.
int quota_cores(const std::string& folder, int otherwise) {
  const auto text = read_file_if_there(folder + "/cpu.max");
  if (!text) {
    return otherwise;
  }
  int64_t quota = 0;
  int64_t period = 0;
  const char* end = text->data() + text->size();
  const auto first = std::from_chars(text->data(), end, quota);
  if (first.ec != std::errc{} || first.ptr == end ||
      std::from_chars(first.ptr + 1, end, period).ec != std::errc{} || period < 1) {
    return otherwise;
  }
  return static_cast<int>(std::clamp<int64_t>(quota / period, 1, otherwise));
}

/// The lowest CPU quota of this process's control group (version 2) and those above it.
int control_group_cores(int otherwise) {
  const std::string root = "/sys/fs/cgroup";
  const auto groups = read_file_if_there("/proc/self/cgroup").value_or("");
  const size_t start = groups.find("0::/");
  if (start == std::string::npos) {
    return otherwise;
  }
  std::string group = groups.substr(start + 3, groups.find('\n', start) - start - 3);
  int cores = quota_cores(root, otherwise);
  while (group.size() > 1) {
    cores = std::min(cores, quota_cores(root + group, otherwise));
    group.resize(group.rfind('/'));
  }
  return cores;
}

}  // namespace

int cores_for_rank(int ranks_on_host) {
  check(ranks_on_host >= 1, "a host runs at least one rank, not {}", ranks_on_host);
  int cores = schedulable_cores();
  try {
    cores = control_group_cores(cores);
  } catch (const Error&) {  // a control group that cannot be read sets no limit that we know of
  }
  return std::max(1, cores / ranks_on_host);
}

}  // namespace muster
