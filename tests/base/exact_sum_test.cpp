#include "tests/base/expect_error.h"

#include <muster/base/exact_sum.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::error_of;

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kHeaviest = std::numeric_limits<int64_t>::max();

ExactSum sum_of(std::initializer_list<double> values) {
  ExactSum sum;
  for (const double value : values) {
    sum.add(value);
  }
  return sum;
}

bool is_negative_zero(double x) { return x == 0 && std::signbit(x); }
bool is_positive_zero(double x) { return x == 0 && !std::signbit(x); }

TEST(ExactSum, IsZeroBeforeAnythingIsAdded) {
  EXPECT_TRUE(is_positive_zero(ExactSum{}.sum()));
  EXPECT_TRUE(is_positive_zero(ExactSum{}.mean(3)));
}

TEST(ExactSum, GivesBackASingleValue) {
  for (const double x : {1.0, -1.0, 0.1, -0.1, 1e300, kLargest, -kLargest, kSmallest, -kSmallest,
                         0x1p-1022, 0x1.fffffffffffffp-1022, 0x0.fffffffffffffp-1022}) {
    EXPECT_EQ(sum_of({x}).sum(), x);
    EXPECT_EQ(sum_of({x}).mean(1), x);
  }
  EXPECT_TRUE(is_positive_zero(sum_of({-0.0}).sum()));
}

TEST(ExactSum, KeepsWhatFloatingPointLoses) {
  EXPECT_EQ(sum_of({1e16, 1, -1e16}).sum(), 1);
  EXPECT_EQ(sum_of({1e300, 1e-300, -1e300}).sum(), 1e-300);
  EXPECT_EQ(sum_of({0.1, 0.2, 0.3, -0.3, -0.2, -0.1}).sum(), 0);
  EXPECT_EQ(sum_of({1, kSmallest, -1}).sum(), kSmallest);
  EXPECT_EQ(sum_of({-1, 0x1.8p-1060, 1, kSmallest}).sum(), 0x1.8p-1060 + kSmallest);
}

TEST(ExactSum, RoundsTiesToEvenAndAnythingBesidesATieAway) {
  EXPECT_EQ(sum_of({1, 0x1p-53}).sum(), 1);
  EXPECT_EQ(sum_of({1, 0x1p-53, kSmallest}).sum(), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({1, 0x1p-53, -kSmallest}).sum(), 1);
  EXPECT_EQ(sum_of({1 + 0x1p-52, 0x1p-53}).sum(), 1 + 0x1p-51);
  EXPECT_EQ(sum_of({-1, -0x1p-53}).sum(), -1);
  EXPECT_EQ(sum_of({-1 - 0x1p-52, -0x1p-53}).sum(), -1 - 0x1p-51);
  // The mantissa overflows into the exponent.
  EXPECT_EQ(sum_of({2 - 0x1p-52, 0x1p-53}).sum(), 2);
}

TEST(ExactSum, IsInfiniteFromHalfAStepBeyondTheLargestDouble) {
  EXPECT_EQ(sum_of({kLargest, 0x1p970}).sum(), kInfinity);
  EXPECT_EQ(sum_of({kLargest, std::nextafter(0x1p970, 0)}).sum(), kLargest);
  EXPECT_EQ(sum_of({kLargest, 0x1p970, -kSmallest}).sum(), kLargest);
  EXPECT_EQ(sum_of({-kLargest, -0x1p970}).sum(), -kInfinity);
  EXPECT_EQ(sum_of({kLargest, kLargest, kLargest}).sum(), kInfinity);
}

TEST(ExactSum, ComesBackFromBeyondTheLargestDouble) {
  EXPECT_EQ(sum_of({kLargest, kLargest, -kLargest}).sum(), kLargest);
  EXPECT_EQ(sum_of({-kLargest, -kLargest, -1, kLargest, kLargest}).sum(), -1);
  EXPECT_EQ(sum_of({kLargest, kLargest, kLargest}).mean(3), kLargest);
  EXPECT_EQ(sum_of({kLargest, kLargest}).mean(4), kLargest / 2);
}

TEST(ExactSum, RoundsAMeanOnceByTheRemainderOfItsDivision) {
  // A third of these lies on, just above and just below the middle of 1 and its upper neighbour.
  EXPECT_EQ(sum_of({3, 3 * 0x1p-53}).mean(3), 1);
  EXPECT_EQ(sum_of({3, 3 * 0x1p-53, kSmallest}).mean(3), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({3, 3 * 0x1p-53, -kSmallest}).mean(3), 1);
  EXPECT_EQ(sum_of({3 + 3 * 0x1p-52, 3 * 0x1p-53}).mean(3), 1 + 0x1p-51);
  // Sum and quotient rounded in turn would give another answer: the sum alone is a tie that rounds
  // down.
  EXPECT_EQ(sum_of({0x1p53, 1}).mean(3), 3002399751580331);  // 9007199254740993 / 3
  EXPECT_EQ(sum_of({0, 1}).mean(3), 1.0 / 3);
  EXPECT_EQ(sum_of({1, 1}).mean(3), 2.0 / 3);
  EXPECT_EQ(sum_of({1}).mean(kHeaviest), 1 / 0x1p63);
}

TEST(ExactSum, RoundsSubnormalMeansByTheRemainderToo) {
  const auto units = [](double count) { return count * kSmallest; };
  EXPECT_TRUE(is_positive_zero(sum_of({units(1)}).mean(2)));  // a tie; zero is even
  EXPECT_EQ(sum_of({units(3)}).mean(2), units(2));            // a tie between 1 and 2
  EXPECT_EQ(sum_of({units(5)}).mean(2), units(2));
  EXPECT_TRUE(is_positive_zero(sum_of({units(1)}).mean(3)));
  EXPECT_EQ(sum_of({units(2)}).mean(3), units(1));
  EXPECT_TRUE(is_negative_zero(sum_of({units(-1)}).mean(3)));
  EXPECT_EQ(sum_of({units(-2)}).mean(3), units(-1));
  EXPECT_EQ(sum_of({units(1)}).mean(kHeaviest), 0);
  EXPECT_EQ(sum_of({0x1p-1022}).mean(2), 0x1p-1023);
  // The largest subnormal and a half rounds up to the smallest normal.
  EXPECT_EQ(sum_of({0x1p-1021, -kSmallest}).mean(2), 0x1p-1022);
}

TEST(ExactSum, CountsNanAndInfinitiesBesideTheSum) {
  EXPECT_TRUE(std::isnan(sum_of({1, kNan, 2}).sum()));
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, kNan}).mean(2)));
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity}).sum()));
  EXPECT_EQ(sum_of({kInfinity, -kLargest}).sum(), kInfinity);
  EXPECT_EQ(sum_of({1, -kInfinity}).mean(2), -kInfinity);
  EXPECT_EQ(sum_of({1, kInfinity, 2}), sum_of({2, 1, kInfinity}));
  EXPECT_NE(sum_of({kInfinity}), sum_of({kInfinity, kInfinity}));
  EXPECT_NE(sum_of({kInfinity}), sum_of({-kInfinity}));
  EXPECT_EQ(sum_of({kNan}), sum_of({-kNan}));
  EXPECT_NE(sum_of({kNan}), ExactSum{});
}

TEST(ExactSum, TakesAWeightAsThatManyAdditions) {
  for (const double x : {0.1, -1e-310, 1e300, -3.0, kNan, kInfinity, -kInfinity}) {
    ExactSum once;
    once.add(x, 5);
    EXPECT_EQ(once, sum_of({x, x, x, x, x})) << x;
    EXPECT_EQ(once.pack(), sum_of({x, x, x, x, x}).pack()) << x;
  }
}

TEST(ExactSum, AddsNothingForWeightZero) {
  ExactSum sum;
  for (const double x : {1.0, kNan, kInfinity, -kInfinity}) {
    sum.add(x, 0);
  }
  EXPECT_EQ(sum, ExactSum{});
}

TEST(ExactSum, TakesTheHeaviestWeights) {
  ExactSum sum;
  sum.add(kLargest, kHeaviest);
  sum.add(kLargest, kHeaviest);
  EXPECT_EQ(sum.sum(), kInfinity);
  sum.add(-kLargest, kHeaviest);
  EXPECT_EQ(sum.mean(kHeaviest), kLargest);
  ExactSum small;
  small.add(kSmallest, kHeaviest);
  small.add(kSmallest);
  EXPECT_EQ(small.sum(), 0x1p-1011);
}

TEST(ExactSum, RejectsANegativeWeightAndAMeanOfNothing) {
  ExactSum sum;
  EXPECT_EQ(error_of([&] { sum.add(1, -1); }).kind(), ErrorKind::usage);
  EXPECT_EQ(sum, ExactSum{});
  EXPECT_EQ(error_of([&] { static_cast<void>(sum.mean(0)); }).kind(), ErrorKind::usage);
}

TEST(ExactSum, MergesWithItself) {
  ExactSum sum = sum_of({0.1, -7, kInfinity});
  sum.merge(sum);
  EXPECT_EQ(sum, sum_of({0.1, 0.1, -7, -7, kInfinity, kInfinity}));
}

// Digits pile up without carrying for 2^30 additions; doubling gets there fast, and adds cross the
// bound.
TEST(ExactSum, CarriesBeforeADigitOverflows) {
  for (const double sign : {1.0, -1.0}) {
    const double x = sign * (2 - 0x1p-52) * 0x1p20;
    ExactSum sum = sum_of({x});
    for (int i = 0; i < 40; ++i) {
      for (int k = 0; k < (i == 29 ? 3 : 0); ++k) {
        sum.add(x);
      }
      sum.merge(sum);
    }
    // 2^40 of the first and 3 * 2^11 of those in between.
    ExactSum expected;
    expected.add(x, (int64_t{1} << 40) + 3 * (int64_t{1} << 11));
    EXPECT_EQ(sum, expected);
  }
}

TEST(ExactSum, CarriesAmongPlainAdditions) {
  const double x = -0x1.fffffffffffffp-1;
  ExactSum sum = sum_of({x});
  for (int i = 0; i < 29; ++i) {
    sum.merge(sum);
  }
  for (int i = 0; i < 1000; ++i) {
    sum.add(x);
  }
  ExactSum expected;
  expected.add(x, (int64_t{1} << 29) + 1000);
  EXPECT_EQ(sum, expected);
}

TEST(ExactSumPacking, IsShortForAMeanOfManyValues) {
  std::mt19937_64 random{1};
  std::uniform_real_distribution<double> uniform{0, 1};
  ExactSum sum;
  for (int i = 0; i < 1000000; ++i) {
    sum.add(uniform(random));
  }
  EXPECT_LE(sum.pack().size(), 64U);
  EXPECT_NEAR(sum.mean(1000000), 0.5, 0.002);
}

TEST(ExactSumPacking, IsAtMostAFewHundredBytes) {
  ExactSum sum = sum_of({kSmallest, kNan, kInfinity, -kInfinity});
  sum.add(kLargest, kHeaviest);
  EXPECT_LE(sum.pack().size(), 320U);
}

TEST(ExactSumPacking, DoesNotTellTheWayToASum) {
  EXPECT_EQ(sum_of({1, -1}).pack(), ExactSum{}.pack());
  EXPECT_EQ(sum_of({3, -4}).pack(), sum_of({-1}).pack());
  EXPECT_EQ(sum_of({0x1p32, -1}).pack(), sum_of({0xffffffffp0}).pack());
  EXPECT_EQ(sum_of({-0x1p64, 1, 0x1p64}).pack(), sum_of({1}).pack());
}

TEST(ExactSumPacking, ComesBackAsItWasAndTakesNoMoreThanItsOwnBytes) {
  for (const auto& sum : {ExactSum{}, sum_of({0.1}), sum_of({-kLargest, kSmallest}),
                          sum_of({kNan, 1e-5, kInfinity, kInfinity})}) {
    const std::string bytes = sum.pack() + sum_of({7}).pack() + "rest";
    std::string_view view = bytes;
    EXPECT_EQ(ExactSum::unpack(view), sum);
    EXPECT_EQ(ExactSum::unpack(view), sum_of({7}));
    EXPECT_EQ(view, "rest");
  }
}

TEST(ExactSumPacking, RejectsEveryTruncation) {
  const std::string bytes = sum_of({kNan, 1e-5, -1e80, kInfinity}).pack();
  for (size_t length = 0; length < bytes.size(); ++length) {
    std::string_view view = std::string_view{bytes}.substr(0, length);
    EXPECT_EQ(error_of([&] { ExactSum::unpack(view); }).kind(), ErrorKind::data);
    EXPECT_EQ(view.size(), length);
  }
}

TEST(ExactSumPacking, RejectsCountsInAnotherForm) {
  const auto taken = [](std::string_view bytes) {
    return error_of([&] { ExactSum::unpack(bytes); }).kind() != ErrorKind::data;
  };
  std::string_view good{"\2\0\1\0\0", 5};
  EXPECT_EQ(ExactSum::unpack(good), sum_of({kNan}));
  EXPECT_FALSE(taken({"\2\0\x81\0\0\0", 6}));  // 1 in two bytes
  EXPECT_FALSE(taken({"\2\0\0\0\0", 5}));      // counts that are all zero
  EXPECT_FALSE(taken("\2" + std::string(1, '\0') + std::string(9, '\xff') + "\2" + "\1\1"));
  EXPECT_FALSE(taken("\2" + std::string(1, '\0') + std::string(30, '\xff')));
}

TEST(ExactSumPacking, TakesOnlyWhatPackWrites) {
  std::mt19937_64 random{2};
  const std::string good = sum_of({kNan, 1e-5, -1e10, kInfinity}).pack();
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (uint64_t k = random() % 3 + 1; k > 0; --k) {
      bytes[random() % (i % 2 == 0 ? 3 : bytes.size())] = static_cast<char>(random());
    }
    std::string_view view = bytes;
    try {
      const std::string again = ExactSum::unpack(view).pack();
      ASSERT_EQ(again, bytes.substr(0, bytes.size() - view.size()));
      ++taken;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::data);
      ASSERT_EQ(view.size(), bytes.size());
    }
  }
  EXPECT_GT(taken, 1000);  // a change inside a digit is another sum
}

}  // namespace
}  // namespace muster
