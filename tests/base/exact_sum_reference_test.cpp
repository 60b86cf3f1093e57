#include "tests/base/exact_reference.h"

#include <muster/base/exact_sum.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster {
namespace {

using test::ExactReference;

using Weighted = std::pair<double, int64_t>;
using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>{low, high}(random);
}

/// A value of either sign within 10^+-decades, now and then a subnormal, a power of two or one with
/// few bits.
double random_value(Random& random, double decades) {
  const double mantissa = std::uniform_real_distribution<double>{1, 2}(random);
  const double exponent = std::uniform_real_distribution<double>{-decades, decades}(random);
  const double sign = pick(random, 0, 1) == 0 ? 1 : -1;
  switch (pick(random, 0, 9)) {
    case 0:
      return sign * std::numeric_limits<double>::denorm_min() *
             static_cast<double>(pick(random, 0, int64_t{1} << 52));
    case 1:
      return sign * std::ldexp(1.0, static_cast<int>(pick(random, -1074, 1023)));
    case 2:
      return sign * std::ldexp(static_cast<double>(pick(random, 1, 64)),
                               static_cast<int>(exponent / std::log10(2.0)));
    default:
      return sign * mantissa * std::pow(10.0, exponent);
  }
}

std::vector<Weighted> random_terms(Random& random, double decades, bool weighted) {
  std::vector<Weighted> terms;
  const int64_t count = pick(random, 1, 30);
  while (static_cast<int64_t>(terms.size()) < count) {
    const double value = random_value(random, decades);
    const int64_t weight = weighted ? pick(random, 0, int64_t{1} << pick(random, 0, 62)) : 1;
    terms.emplace_back(value, weight);
    if (pick(random, 0, 4) == 0) {
      terms.emplace_back(-value, weight);  // cancels, and leaves what is small
    }
  }
  return terms;
}

ExactSum sum_of(const std::vector<Weighted>& terms) {
  ExactSum sum;
  for (const auto& [value, weight] : terms) {
    if (weight == 1) {
      sum.add(value);
    } else {
      sum.add(value, weight);
    }
  }
  return sum;
}

/// The same terms in another order, dealt to a few accumulators that travel as bytes and merge in
/// any order.
ExactSum split_sum_of(std::vector<Weighted> terms, Random& random) {
  std::shuffle(terms.begin(), terms.end(), random);
  std::vector<ExactSum> parts(static_cast<size_t>(pick(random, 1, 5)));
  for (const auto& [value, weight] : terms) {
    auto& part =
        parts[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(parts.size()) - 1))];
    part.add(value, weight);
  }
  std::shuffle(parts.begin(), parts.end(), random);
  ExactSum total;
  for (const auto& part : parts) {
    const std::string bytes = part.pack();
    std::string_view view = bytes;
    total.merge(ExactSum::unpack(view));
    EXPECT_TRUE(view.empty());
  }
  return total;
}

void compare_with_reference(int sums, double decades, bool weighted, uint64_t seed) {
  Random random{seed};
  for (int i = 0; i < sums; ++i) {
    const auto terms = random_terms(random, decades, weighted);
    ExactReference reference;
    for (const auto& [value, weight] : terms) {
      reference.add(value, static_cast<uint64_t>(weight));
    }
    const ExactSum sum = sum_of(terms);
    const int64_t n = pick(random, 1, int64_t{1} << pick(random, 1, 62));
    ASSERT_TRUE(reference.rounds_to(sum.sum(), 1)) << "sum " << i << " is " << sum.sum();
    ASSERT_TRUE(reference.rounds_to(sum.mean(n), static_cast<uint64_t>(n)))
        << "mean " << i << " of " << n << " is " << sum.mean(n);
    const ExactSum split = split_sum_of(terms, random);
    ASSERT_EQ(split, sum) << "sum " << i;
    ASSERT_EQ(split.pack(), sum.pack()) << "sum " << i;
  }
}

TEST(ExactSumReference, AgreesOnTenThousandSumsOverSixHundredDecadesInAnyOrderAndSplit) {
  compare_with_reference(10000, 300, false, 1);
}

TEST(ExactSumReference, AgreesWhereTermsAreOfSimilarSizeAndCancel) {
  compare_with_reference(4000, 3, false, 2);
}

TEST(ExactSumReference, AgreesOnWeightedSums) { compare_with_reference(4000, 300, true, 3); }

// The reference must be able to say no, or the tests above mean nothing.
TEST(ExactSumReference, RejectsTheNeighboursOfTheRightAnswer) {
  Random random{4};
  for (int i = 0; i < 500; ++i) {
    const auto terms = random_terms(random, 5, false);
    ExactReference reference;
    for (const auto& [value, weight] : terms) {
      reference.add(value, static_cast<uint64_t>(weight));
    }
    const double mean = sum_of(terms).mean(7);
    ASSERT_TRUE(reference.rounds_to(mean, 7));
    ASSERT_FALSE(reference.rounds_to(std::nextafter(mean, HUGE_VAL), 7)) << mean;
    ASSERT_FALSE(reference.rounds_to(std::nextafter(mean, -HUGE_VAL), 7)) << mean;
  }
}

}  // namespace
}  // namespace muster
