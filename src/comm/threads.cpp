#include <muster/comm/group.h>

#include <muster/base/check.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace muster {

namespace {

using Slots = std::vector<std::string>;

/// Where the ranks of one process meet. An exchange ends when all have given their bytes; that
/// everyone then gets the result, even if a rank fails right after, is what lets all ranks report
/// the same mismatch.
class Board {
 public:
  explicit Board(size_t size) : slots_(size) {}

  [[nodiscard]] size_t size() const { return slots_.size(); }

  std::shared_ptr<const Slots> exchange(size_t rank, std::string_view mine) {
    std::unique_lock lock{mutex_};
    check_alive();
    slots_[rank] = mine;
    const int64_t generation = generation_;
    if (++arrived_ == slots_.size()) {
      result_ = std::make_shared<const Slots>(
          std::exchange(slots_, std::vector<std::string>(slots_.size())));
      arrived_ = 0;
      ++generation_;
      changed_.notify_all();
      return result_;
    }
    changed_.wait(lock, [&] { return generation_ != generation || lost_; });
    if (generation_ == generation) check_alive();
    return result_;
  }

  void lose(const std::string& reason) {
    {
      const std::lock_guard lock{mutex_};
      if (!lost_) lost_ = reason;
    }
    changed_.notify_all();
  }

 private:
  void check_alive() const {
    check(!lost_, ErrorKind::peer_lost, "{}", lost_.value_or(std::string{}));
  }

  std::mutex mutex_{};
  std::condition_variable changed_{};
  Slots slots_;
  size_t arrived_ = 0;
  int64_t generation_ = 0;
  std::shared_ptr<const Slots> result_{};
  std::optional<std::string> lost_{};
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Board> board, int rank) : board_{std::move(board)}, rank_{rank} {}
  ThreadTransport(const ThreadTransport&) = delete;
  ThreadTransport& operator=(const ThreadTransport&) = delete;
  ~ThreadTransport() override { board_->lose(format("rank {} has left the group", rank_)); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(board_->size()); }

  Slots exchange(std::string_view mine) override {
    return *board_->exchange(static_cast<size_t>(rank_), mine);
  }

  Slots exchange(std::string_view mine, std::span<const int64_t> sizes) override {
    auto all = exchange(mine);
    for (size_t r = 0; r < all.size(); ++r) {
      check(static_cast<int64_t>(all[r].size()) == sizes[r], ErrorKind::mismatch,
            "rank {} announced {} bytes and gave {}", r, sizes[r], all[r].size());
    }
    return all;
  }

  void abort(const std::string& reason) override {
    board_->lose(format("rank {} failed: {}", rank_, reason));
  }

 private:
  std::shared_ptr<Board> board_;
  int rank_;
};

std::exception_ptr run_rank(const std::shared_ptr<Board>& board, int rank,
                            const std::function<void(Group&)>& body, const GroupOptions& options) {
  Group group{std::make_unique<ThreadTransport>(board, rank), options};
  try {
    body(group);
    return nullptr;
  } catch (const std::exception& error) {
    group.abort(error.what());
    return std::current_exception();
  } catch (...) {
    group.abort("an exception of unknown type");
    return std::current_exception();
  }
}

bool is_peer_lost(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::peer_lost;
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_threads(int ranks, const std::function<void(Group&)>& body, const GroupOptions& options) {
  check(ranks >= 1, "a group needs at least one rank, not {}", ranks);
  const auto board = std::make_shared<Board>(static_cast<size_t>(ranks));
  std::vector<std::exception_ptr> failures(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(failures.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { failures[static_cast<size_t>(rank)] = run_rank(board, rank, body, options); });
  }
  for (auto& thread : threads) thread.join();

  std::exception_ptr secondary;
  for (const auto& failure : failures) {
    if (!failure) continue;
    if (!is_peer_lost(failure)) std::rethrow_exception(failure);
    if (!secondary) secondary = failure;
  }
  if (secondary) std::rethrow_exception(secondary);
}

}  // namespace muster
