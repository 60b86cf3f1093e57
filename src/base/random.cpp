#include <muster/base/check.h>
#include <muster/base/random.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

namespace muster {

namespace {

__extension__ using Wide = unsigned __int128;

// The C library picks its log and cos by processor, and they differ in the last bit. These are
// plain additions, multiplications and divisions, which are the same everywhere; good to about
// 1e-15.

/// Natural logarithm of a multiple of 2^-53 in (0, 1].
double portable_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52U) - 1023;
  auto mantissa = std::bit_cast<double>((bits & 0xfffffffffffffU) | (uint64_t{1023} << 52U));
  if (mantissa > std::numbers::sqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh t, |t| <= 0.1716: the terms left out are below 1e-17.
  const double t = (mantissa - 1) / (mantissa + 1);
  const double square = t * t;
  double series = 0;
  for (int power = 21; power >= 1; power -= 2) {
    series = series * square + 1.0 / power;
  }
  return exponent * std::numbers::ln2 + 2 * t * series;
}

/// Cosine of 2 pi `turn` for `turn` in [0, 1).
double portable_cos_turn(double turn) {
  const int quarter = (static_cast<int>(turn * 8) + 1) / 2;
  const double angle = (turn - quarter * 0.25) * 2 * std::numbers::pi;
  const double square = angle * angle;
  double cosine = 0;
  double sine = 0;
  for (int k = 9; k >= 0; --k) {
    cosine = 1 - square / ((2 * k + 1) * (2 * k + 2)) * cosine;
    sine = 1 - square / ((2 * k + 2) * (2 * k + 3)) * sine;
  }
  sine *= angle;
  switch (quarter % 4) {
    case 0:
      return cosine;
    case 1:
      return -sine;
    case 2:
      return -cosine;
    default:
      return sine;
  }
}

}  // namespace

uint64_t mix_key(std::initializer_list<uint64_t> parts) {
  uint64_t key = detail::scramble(parts.size() + detail::golden);
  for (const uint64_t part : parts) {
    key = detail::scramble((key ^ part) + detail::golden);
  }
  return key;
}

int64_t Rng::below(int64_t bound) {
  check(bound >= 1, "a random number below {} does not exist: the bound must be at least 1", bound);
  // Lemire, "Fast random integer generation in an interval", 2019: the high half of a product,
  // redrawn where the low half falls into the part that some results would have once more than
  // others.
  const auto range = static_cast<uint64_t>(bound);
  const uint64_t uneven = (0 - range) % range;
  Wide product = 0;
  do {
    product = static_cast<Wide>((*this)()) * range;
  } while (static_cast<uint64_t>(product) < uneven);
  return static_cast<int64_t>(product >> 64U);
}

double Rng::uniform() { return static_cast<double>((*this)() >> 11U) * 0x1p-53; }

double Rng::uniform(double low, double high) {
  check(low <= high && std::isfinite(high - low),
        "a random number in [{}, {}) needs finite bounds, the lower one first", low, high);
  const double value = low + (high - low) * uniform();
  // The rounding of the sum can reach the upper bound, which does not belong to the range.
  return value < high || low == high ? value : std::nextafter(high, low);
}

double Rng::normal() {
  const double radius = std::sqrt(-2 * portable_log(1 - uniform()));
  return radius * portable_cos_turn(uniform());
}

void Rng::shuffle(std::span<int64_t> items) {
  for (size_t left = items.size(); left > 1; --left) {
    const auto pick = static_cast<size_t>(below(static_cast<int64_t>(left)));
    std::swap(items[left - 1], items[pick]);
  }
}

}  // namespace muster
