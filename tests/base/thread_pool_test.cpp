#include "tests/base/expect_error.h"

#include <muster/base/check.h>
#include <muster/base/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using test::error_of;

TEST(ThreadPool, RunsTasksInTheirOrder) {
  std::vector<int> order;
  {
    ThreadPool pool{1, 3};
    for (int i = 0; i < 100; ++i) {
      pool.submit([&order, i] { order.push_back(i); });
    }
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(ThreadPool, HandsResultsBackThroughTheFuture) {
  ThreadPool pool{2};
  EXPECT_EQ(pool.threads(), 2);
  auto number = pool.submit([] { return 42; });
  auto owned = pool.submit([in = std::make_unique<int>(7)]() mutable { return std::move(in); });
  auto nothing = pool.submit([] {});
  EXPECT_EQ(number.get(), 42);
  EXPECT_EQ(*owned.get(), 7);
  nothing.get();
}

TEST(ThreadPool, HandsExceptionsBackThroughTheFutureAndGoesOn) {
  ThreadPool pool{1};
  auto failing = pool.submit([]() -> int { throw std::out_of_range{"task"}; });
  auto erring = pool.submit([] { fail(ErrorKind::data, "bad sample {}", 3); });
  auto fine = pool.submit([] { return 1; });
  EXPECT_THROW(failing.get(), std::out_of_range);
  const Error error = error_of([&] { erring.get(); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_STREQ(error.what(), "bad sample 3");
  EXPECT_EQ(fine.get(), 1);
}

TEST(ThreadPool, RunsAsManyTasksAtOnceAsItHasThreads) {
  ThreadPool pool{3};
  std::barrier meeting{3};
  std::vector<std::future<void>> tasks;
  tasks.reserve(3);
  for (int i = 0; i < 3; ++i) {
    tasks.push_back(pool.submit([&] { meeting.arrive_and_wait(); }));
  }
  for (auto& task : tasks) {
    ASSERT_EQ(task.wait_for(std::chrono::seconds{30}), std::future_status::ready);
  }
}

TEST(ThreadPool, BlocksTheProducerBeyondTheMostThatWait) {
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  std::atomic<int> submitted{0};
  std::atomic<int> run{0};
  ThreadPool pool{1, 2};
  std::promise<void> started;
  pool.submit([&] {
    started.set_value();
    opened.wait();
  });
  started.get_future().wait();
  std::thread producer{[&] {
    for (int i = 0; i < 4; ++i) {
      pool.submit([&] { ++run; });
      ++submitted;
    }
  }};
  while (submitted < 2) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(milliseconds{50});
  EXPECT_EQ(submitted, 2);
  EXPECT_EQ(run, 0);
  gate.set_value();
  producer.join();
  EXPECT_EQ(submitted, 4);
}

TEST(ThreadPool, RunsWhatWaitsBeforeItEnds) {
  std::atomic<int> run{0};
  {
    ThreadPool pool{2};
    for (int i = 0; i < 20; ++i) {
      pool.submit([&] {
        std::this_thread::sleep_for(milliseconds{1});
        ++run;
      });
    }
  }
  EXPECT_EQ(run, 20);
}

TEST(ThreadPool, TakesTasksFromManyThreads) {
  std::atomic<int> run{0};
  {
    ThreadPool pool{2, 1};
    std::vector<std::thread> producers;
    producers.reserve(4);
    for (int i = 0; i < 4; ++i) {
      producers.emplace_back([&] {
        for (int k = 0; k < 200; ++k) {
          pool.submit([&] { ++run; });
        }
      });
    }
    for (auto& producer : producers) {
      producer.join();
    }
  }
  EXPECT_EQ(run, 800);
}

TEST(ThreadPool, RefusesATaskFromItsOwnThreads) {
  ThreadPool pool{1, 1};
  auto task = pool.submit([&] { pool.submit([] {}); });
  EXPECT_EQ(error_of([&] { task.get(); }).kind(), ErrorKind::usage);
}

TEST(ThreadPool, NeedsAThreadAndRoomForATask) {
  EXPECT_EQ(error_of([] { ThreadPool{0}; }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([] { ThreadPool{-1}; }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([] { ThreadPool(1, 0); }).kind(), ErrorKind::usage);
}

TEST(CoresForRank, DividesTheCoresAmongTheRanks) {
  const int all = cores_for_rank(1);
  EXPECT_GE(all, 1);
  EXPECT_EQ(cores_for_rank(2), std::max(1, all / 2));
  EXPECT_EQ(cores_for_rank(100000), 1);
  EXPECT_EQ(error_of([] { cores_for_rank(0); }).kind(), ErrorKind::usage);
}

TEST(CoresForRank, CountsOnlyTheCoresItMayRunOn) {
  std::thread{[] {
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) {
      ++first;
    }
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    EXPECT_EQ(cores_for_rank(1), 1);
  }}.join();
}

}  // namespace
}  // namespace muster
