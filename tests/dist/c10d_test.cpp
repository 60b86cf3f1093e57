#include "dist/processes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "support/paths.h"
#include "support/texts.h"

namespace muster::test {
namespace {

using Environment = std::map<std::string, std::string>;

std::vector<std::string> rank_program(const std::string& scenario) {
  return {(bin_dir() / "test_dist_c10d_program").string(), scenario};
}

Environment environment_of(int rank, int size, int port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)}};
}

/// Runs one scenario of c10d_program.cpp on `size` processes.
std::vector<Ended> run_ranks(const std::string& scenario, int size, const Environment& more = {}) {
  return test::run_ranks(rank_program(scenario), size, more);
}

TEST(C10d, RunsRandomProgramsAndReportsTheWrongOneOnEveryRank) {
  for (const int size : {2, 3}) {
    const auto ranks = run_ranks("programs", size, {{"PROGRAMS", "40"}});
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank.exit_code, 70) << rank.output;
      EXPECT_EQ(rank.output, ranks[0].output);
      EXPECT_EQ(rank.output.rfind("40 programs, 0 wrong results\nerror: the ranks disagree", 0), 0U)
          << rank.output;
    }
  }
}

TEST(C10d, CarriesLargeAndEmptyPayloads) {
  for (const auto& rank : run_ranks("large", 2)) EXPECT_EQ(rank.exit_code, 0) << rank.output;
}

TEST(C10d, MakesAFurtherProcessGroupFromTheSameStore) {
  for (const auto& rank : run_ranks("further group", 2)) {
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
  }
}

TEST(C10d, AKilledRankIsSeenByTheOthersWithinTwoSeconds) {
  for (const int size : {2, 3}) {
    const auto ranks = run_ranks("killed", size);
    EXPECT_EQ(ranks[1].exit_code, 128 + 9);
    for (int rank = 0; rank < size; ++rank) {
      if (rank == 1) continue;
      const auto& ended = ranks[static_cast<size_t>(rank)];
      EXPECT_EQ(ended.exit_code, 75) << ended.output;
      const auto seconds = captures(ended.output, "seconds ([0-9.]+)");
      ASSERT_FALSE(seconds.empty()) << ended.output;
      EXPECT_LT(std::stod(seconds[0]), 2.0);
      EXPECT_NE(
          ended.output.find("was at before the first section, call 2: barrier at tests/dist/"),
          std::string::npos)
          << ended.output;
    }
  }
}

TEST(C10d, ARankThatReturnsOrGivesUpIsSeenByTheOther) {
  const auto left = run_ranks("leaves", 2);
  EXPECT_EQ(left[0].exit_code, 0) << left[0].output;
  EXPECT_EQ(left[1].exit_code, 75) << left[1].output;
  const auto gave_up = run_ranks("gives up", 2);
  EXPECT_EQ(gave_up[0].exit_code, 75);
  EXPECT_NE(gave_up[0].output.find("this rank has given up: no more"), std::string::npos);
  EXPECT_EQ(gave_up[1].exit_code, 75) << gave_up[1].output;
}

constexpr const char* loopback = "127.0.0.1";
constexpr const char* listens = "listens ([^ ]+) [0-9]+\n";

/// Every listener of every rank is on 127.0.0.1; rank 0 has the store's too.
void expect_loopback(const std::vector<Ended>& ranks) {
  for (const auto& rank : ranks) {
    ASSERT_EQ(rank.exit_code, 0) << rank.output;
    const std::vector<std::string> expected(&rank == ranks.data() ? 2 : 1, loopback);
    EXPECT_EQ(captures(rank.output, listens), expected) << rank.output;
  }
}

TEST(C10d, ListensOnLoopbackOnlyWithASocketThatIsPassed) {
  expect_loopback(run_ranks("listeners", 2));
}

int free_port() { return Listener{}.port; }

TEST(C10d, ListensOnLoopbackOnlyWhenRankZeroBindsItself) {
  const int port = free_port();
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < 2; ++rank) {
    auto environment = environment_of(rank, 2, port);
    environment["MASTER_ADDR"] = "localhost";
    children.push_back(std::make_unique<Child>(rank_program("listeners"), environment));
  }
  std::vector<Ended> ranks;
  ranks.reserve(children.size());
  for (auto& child : children) ranks.push_back(child->wait());
  expect_loopback(ranks);
}

TEST(C10d, APlaceThatStandsForAllAddressesIsRefused) {
  for (const auto* master : {"0.0.0.0", "::", "0", "::ffff:0.0.0.0"}) {
    for (const int rank : {0, 1}) {
      auto environment = environment_of(rank, 2, free_port());
      environment["MASTER_ADDR"] = master;
      const auto ended = Child{rank_program("listeners"), environment}.wait();
      EXPECT_EQ(ended.exit_code, 2) << ended.output;
      EXPECT_NE(ended.output.find("is no address of a host"), std::string::npos) << ended.output;
    }
  }
}

TEST(C10d, ProgramsThatARankStartsInheritNoSocket) {
  for (const auto& rank : run_ranks("inherited", 2)) {
    EXPECT_EQ(rank.exit_code, 0) << rank.output;
    EXPECT_EQ(rank.output, "sockets that are passed on: 0\n");
  }
}

TEST(C10d, TheNameOfAJobMayBeAnyText) {
  const auto ranks = run_ranks(
      "large", 2, {{"MUSTER_JOB", "a\n/../" + std::string(5000, 'x')}, {"MUSTER_LAUNCHED", "1"}});
  for (const auto& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.output;
}

TEST(C10d, ATakenPortIsARendezvousErrorThatNamesIt) {
  const Listener taken;
  Child child{rank_program("listeners"), environment_of(0, 2, taken.port)};
  const auto ended = child.wait();
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_NE(ended.output.find("cannot listen at 127.0.0.1 port " + std::to_string(taken.port)),
            std::string::npos)
      << ended.output;
}

TEST(C10d, RanksThatDoNotComeAreARendezvousErrorInTime) {
  const auto start = std::chrono::steady_clock::now();
  auto environment = environment_of(0, 2, free_port());
  environment["RENDEZVOUS_TIMEOUT"] = "2";
  Child first{rank_program("listeners"), environment};
  environment = environment_of(1, 2, free_port());
  environment["RENDEZVOUS_TIMEOUT"] = "2";
  Child second{rank_program("listeners"), environment};
  for (Child* child : {&first, &second}) {
    const auto ended = child->wait();
    EXPECT_EQ(ended.exit_code, 69);
    EXPECT_NE(ended.output.find(" of 2 did not find the others at 127.0.0.1 port "),
              std::string::npos)
        << ended.output;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{15});
}

/// The real torchrun with two ranks; its agent hosts the store. The addresses are given because a
/// machine may not know the name localhost, which `--standalone` takes.
Ended run_torchrun(const std::string& scenario, const std::string& restarts) {
  const auto torchrun = tests_dir().parent_path() / ".venv/bin/torchrun";
  if (!std::filesystem::exists(torchrun)) return {.exit_code = -1};
  const auto rank = rank_program(scenario);
  Child child{
      {torchrun.string(), "--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0",
       "--local-addr=127.0.0.1", "--nproc-per-node=2", "--max-restarts=" + restarts,
       "--monitor-interval=0.1", "--no-python", rank[0], rank[1]},
      {{"RENDEZVOUS_TIMEOUT", "10"}}};
  return child.wait();
}

TEST(C10d, RunsUnderTorchrun) {
  const auto ended = run_torchrun("listeners", "0");
  if (ended.exit_code == -1) GTEST_SKIP() << "there is no torchrun in .venv";
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(captures(ended.output, listens), (std::vector<std::string>{loopback, loopback}))
      << ended.output;
}

TEST(C10d, ARestartByTorchrunFindsNothingOfTheFailedAttempt) {
  const auto ended = run_torchrun("restarted", "1");
  if (ended.exit_code == -1) GTEST_SKIP() << "there is no torchrun in .venv";
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

}  // namespace
}  // namespace muster::test
