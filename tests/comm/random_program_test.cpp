#include "tests/comm/random_program.h"

#include "tests/comm/deadline.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>

#include <atomic>

namespace muster::test {
namespace {

using std::chrono::seconds;

TEST(RandomPrograms, GiveOnEveryRankWhatASimulationGives) {
  const Deadline deadline{seconds{100}, "a valid program"};
  int64_t calls = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 7);
    const Program program = ProgramMaker{seed}.valid(ranks);
    std::atomic<int> wrong{0};
    run_threads(ranks, [&](Group& group) { wrong += run_rank(group, program); });
    ASSERT_EQ(wrong.load(), 0) << "seed " << seed;
    for (const auto& stop : program.ranks[0]) calls += static_cast<int64_t>(stop.calls.size());
  }
  EXPECT_GT(calls, 3000) << "the programs are too poor to show anything";
}

/// Every rank's error of an invalid program; "" where there was none.
std::vector<std::string> mismatches(const Program& program, std::atomic<int>& wrong) {
  std::vector<std::string> messages(program.ranks.size());
  try {
    run_threads(static_cast<int>(messages.size()), [&](Group& group) {
      try {
        wrong += run_rank(group, program);
      } catch (const Error& error) {
        auto& message = messages[static_cast<size_t>(group.rank())];
        message = error.kind() == ErrorKind::mismatch ? error.what()
                                                      : std::string{"other: "} + error.what();
        throw;
      }
    });
  } catch (const Error&) {
  }
  return messages;
}

TEST(RandomPrograms, WithOneThingWrongAreAMismatchOnEveryRankThatNamesAllRanks) {
  const Deadline deadline{seconds{100}, "an invalid program"};
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 6);
    const Program program = ProgramMaker{seed}.invalid(ranks);
    std::atomic<int> wrong{0};
    const auto messages = mismatches(program, wrong);
    ASSERT_EQ(wrong.load(), 0) << "seed " << seed;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& message = messages[static_cast<size_t>(rank)];
      ASSERT_EQ(message, messages[0]) << "seed " << seed;
      const std::string line = "\nrank " + std::to_string(rank) + ": ";
      ASSERT_NE(message.find(line), std::string::npos) << "seed " << seed << "\n" << message;
      ASSERT_NE(message.find("random_program.h:", message.find(line)), std::string::npos);
    }
    ASSERT_EQ(messages[0].rfind("the ranks disagree on the next collective: ", 0), 0U)
        << messages[0];
  }
}

}  // namespace
}  // namespace muster::test
