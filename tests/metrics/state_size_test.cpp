// What travels at an epoch's end does not grow with the number of samples.

#include <muster/base/random.h>
#include <muster/metrics/aggregate.h>
#include <muster/metrics/ledger.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace muster {
namespace {

constexpr size_t most_bytes = 1024;
constexpr int64_t most_samples = 10'000'000;

/// Any double, of any exponent; NaN and infinities too, unless only `finite` ones are wanted.
double any_double(Rng& rng, bool finite) {
  while (true) {
    const auto value = std::bit_cast<double>(rng());
    if (!finite || std::abs(value) <= std::numeric_limits<double>::max()) {
      return value;
    }
  }
}

/// The largest state at N = 1, 10, 100, ..., 10^7 samples.
template <typename Add, typename State>
size_t largest_state(const Add& add, const State& state) {
  size_t largest = 0;
  int64_t next = 1;
  for (int64_t n = 1; n <= most_samples; ++n) {
    add(n);
    if (n == next) {
      largest = std::max(largest, state().size());
      next *= 10;
    }
  }
  return largest;
}

TEST(StateSize, OfALoggedMeanIsBelowAKilobyteForTenMillionSamplesOfAnyMagnitude) {
  for (const bool finite : {false, true}) {
    Rng rng{5, finite ? 1U : 0U};
    Ledger ledger;
    const auto add = [&](int64_t n) {
      ledger.log("validation/unknown_region/gradient_error", any_double(rng, finite),
                 rng.below(int64_t{1} << 39U), ReduceFx::mean,
                 {.loader = 0, .batch = n, .call = 0});
      ledger.add_samples(1);
    };
    const size_t largest = largest_state(add, [&] { return ledger.state(); });
    EXPECT_LE(largest, most_bytes);
    EXPECT_GT(largest, 200U) << "the values were not as extreme as they should be";
  }
}

TEST(StateSize, OfMeanSumAndStandardDeviationIsBelowAKilobyteToo) {
  Rng rng{6};
  Mean mean;
  Sum sum;
  StandardDeviation deviation;
  const auto add = [&](int64_t /*n*/) {
    const double value = any_double(rng, false);
    mean.update(value, rng.below(int64_t{1} << 39U));
    sum.update(value);
    deviation.update(value);
  };
  const size_t largest = largest_state(add, [&] {
    return std::max({mean.state(), sum.state(), deviation.state()},
                    [](const auto& one, const auto& two) { return one.size() < two.size(); });
  });
  EXPECT_LE(largest, most_bytes);
  EXPECT_GT(largest, 200U) << "the values were not as extreme as they should be";
}

TEST(StateSize, OfAMeanOfValuesOfSimilarSizeIsAboutAHundredBytesWithItsName) {
  Rng rng{7};
  Ledger empty;
  Ledger ledger;
  for (int64_t n = 0; n < 100'000; ++n) {
    ledger.log("val/loss", rng.uniform(0.5, 2.0), 8, ReduceFx::mean,
               {.loader = 0, .batch = n, .call = 0});
  }
  EXPECT_LE(ledger.state().size(), empty.state().size() + 100);
}

}  // namespace
}  // namespace muster
