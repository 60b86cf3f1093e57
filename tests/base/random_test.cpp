#include "tests/base/expect_error.h"

#include <muster/base/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::error_of;

TEST(Rng, GivesThePublishedStreamOfSplitMix64) {
  Rng rng{1234567};
  for (const uint64_t expected : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                  4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(rng(), expected);
  }
}

// Recorded values: a data set, an order or an augmentation must not change with a version of
// Muster.
TEST(Rng, NeverChangesWhatItGives) {
  Rng rng{1, 2, 3};
  EXPECT_EQ(mix_key({}), 16294208416658607535U);
  EXPECT_EQ(mix_key({0}), 6791897765849424158U);
  EXPECT_EQ(mix_key({1, 2, 3}), 5631902732087738355U);
  EXPECT_EQ(rng.below(1000), 193);
  EXPECT_EQ(rng.below(int64_t{1} << 62), 3779261530408160971);
  EXPECT_EQ(rng.uniform(), 0x1.681fa42a0124fp-1);
  EXPECT_EQ(rng.uniform(-3, 5), -0x1.6209b1d21422p+0);
  EXPECT_EQ(rng.normal(), 0x1.1f219f2ecfd67p-1);
  EXPECT_EQ(rng.normal(), -0x1.74adb7c610fbp+0);
  std::vector<int64_t> items{0, 1, 2, 3, 4, 5, 6, 7};
  rng.shuffle(items);
  EXPECT_EQ(items, (std::vector<int64_t>{2, 1, 7, 0, 6, 5, 3, 4}));
}

TEST(MixKey, TellsNeighboursOrderAndLengthApart) {
  std::set<uint64_t> keys;
  size_t count = 0;
  for (uint64_t a = 0; a < 40; ++a) {
    keys.insert(mix_key({a}));
    ++count;
    for (uint64_t b = 0; b < 40; ++b) {
      keys.insert(mix_key({a, b}));
      keys.insert(mix_key({a, b, 0}));
      count += 2;
    }
  }
  EXPECT_EQ(keys.size(), count);
}

TEST(MixKey, ChangesHalfOfTheBitsForANeighbour) {
  double changed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    changed += __builtin_popcountll(mix_key({7, i}) ^ mix_key({7, i + 1}));
    changed += __builtin_popcountll(mix_key({i, 7}) ^ mix_key({i + 1, 7}));
  }
  EXPECT_NEAR(changed / 2000, 32, 0.5);
}

TEST(Rng, StartsFromTheMixOfSeveralNumbersAndFromASingleOneItself) {
  const uint64_t key = mix_key({4, 5});
  const uint64_t first = Rng(key)();
  EXPECT_EQ((Rng{4, 5}()), first);
  EXPECT_EQ(Rng{key}(), first);
  EXPECT_EQ(Rng({key})(), first);
}

TEST(RngBelow, IsEvenlySpread) {
  Rng rng{1};
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) {
    ++counts.at(static_cast<size_t>(rng.below(7)));
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 10000, 500);
  }
}

// With a bound of three quarters of 2^63 a plain remainder or product would favour some results by
// half.
TEST(RngBelow, IsEvenlySpreadForHugeBoundsToo) {
  Rng rng{2};
  const int64_t quarter = int64_t{1} << 61;
  std::array<int, 3> counts{};
  for (int i = 0; i < 30000; ++i) {
    ++counts.at(static_cast<size_t>(rng.below(3 * quarter) / quarter));
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 10000, 400);
  }
}

TEST(RngBelow, TakesTheSmallestAndLargestBoundAndNoneBelowOne) {
  Rng rng{3};
  EXPECT_EQ(rng.below(1), 0);
  EXPECT_GE(rng.below(std::numeric_limits<int64_t>::max()), 0);
  EXPECT_EQ(error_of([&] { rng.below(0); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { rng.below(-1); }).kind(), ErrorKind::usage);
}

TEST(RngUniform, LiesInItsRangeOnAGridOfTwoToTheMinus53) {
  Rng rng{4};
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = rng.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    ASSERT_EQ(x * 0x1p53, std::floor(x * 0x1p53));
    sum += x;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

TEST(RngUniform, NeverReachesTheUpperBound) {
  Rng rng{5};
  const double above = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(rng.uniform(1, above), 1);
    const double x = rng.uniform(-1e-300, 1e16);
    ASSERT_TRUE(x >= -1e-300 && x < 1e16);
  }
  EXPECT_EQ(rng.uniform(2, 2), 2);
}

TEST(RngUniform, NeedsFiniteBoundsTheLowerOneFirst) {
  Rng rng{6};
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { rng.uniform(1, 0); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { rng.uniform(0, infinity); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_of([&] { rng.uniform(std::nan(""), 1); }).kind(), ErrorKind::usage);
}

TEST(RngNormal, IsBoxAndMullersFormula) {
  Rng rng{7};
  Rng same{7};
  for (int i = 0; i < 100000; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - same.uniform()));
    const double expected = radius * std::cos(2 * std::numbers::pi * same.uniform());
    ASSERT_NEAR(rng.normal(), expected, 1e-14) << i;
  }
}

TEST(RngNormal, HasMeanZeroAndDeviationOne) {
  Rng rng{8};
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.02);
  EXPECT_NEAR(squares / 100000, 1, 0.02);
}

TEST(RngShuffle, IsAPermutation) {
  for (const int64_t size : {0, 1, 2, 100}) {
    std::vector<int64_t> items(static_cast<size_t>(size));
    std::iota(items.begin(), items.end(), 0);
    const auto sorted = items;
    Rng{9}.shuffle(items);
    EXPECT_TRUE(size < 100 || items != sorted);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, sorted);
  }
}

TEST(RngShuffle, GivesEveryOrderAsOften) {
  Rng rng{10};
  std::array<int, 27> counts{};
  for (int i = 0; i < 60000; ++i) {
    std::array<int64_t, 3> items{0, 1, 2};
    rng.shuffle(items);
    ++counts.at(static_cast<size_t>(9 * items[0] + 3 * items[1] + items[2]));
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 21);
  for (const int count : counts) {
    EXPECT_TRUE(count == 0 || std::abs(count - 10000) < 500) << count;
  }
}

}  // namespace
}  // namespace muster
