#include "tests/base/exact_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace muster::test {

void BigInteger::add(const BigInteger& other, unsigned shift) {
  const size_t whole = shift / 16;
  const unsigned bits = shift % 16;
  uint64_t carry = 0;
  for (size_t i = 0; i <= other.digits_.size() || carry != 0; ++i) {
    const uint64_t below = i == 0 ? 0 : other.digit(i - 1) >> (16 - bits);
    const uint64_t shifted = (other.digit(i) << bits & 0xffffU) | below;
    if (digits_.size() <= i + whole) {
      digits_.resize(i + whole + 1);
    }
    const uint64_t total = digits_[i + whole] + shifted + carry;
    digits_[i + whole] = static_cast<uint32_t>(total % 65536);
    carry = total / 65536;
  }
}

BigInteger BigInteger::times(uint64_t factor) const {
  BigInteger product;
  for (unsigned part = 0; part < 4; ++part) {
    const uint64_t small = factor >> (16 * part) & 0xffffU;
    if (small == 0) {
      continue;
    }
    BigInteger row;
    uint64_t carry = 0;
    for (size_t i = 0; i < digits_.size() || carry != 0; ++i) {
      const uint64_t total = digit(i) * small + carry;
      row.digits_.push_back(static_cast<uint32_t>(total % 65536));
      carry = total / 65536;
    }
    product.add(row, 16 * part);
  }
  return product;
}

int BigInteger::compare(const BigInteger& other) const {
  for (size_t i = std::max(digits_.size(), other.digits_.size()); i-- > 0;) {
    if (digit(i) != other.digit(i)) {
      return digit(i) < other.digit(i) ? -1 : 1;
    }
  }
  return 0;
}

BigInteger BigInteger::of(uint64_t number) {
  BigInteger result;
  for (; number != 0; number /= 65536) {
    result.digits_.push_back(static_cast<uint32_t>(number % 65536));
  }
  return result;
}

BigInteger BigInteger::of_double(double x) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
  int shift = exponent - 53 + 1074;
  for (; shift < 0; ++shift) {
    mantissa /= 2;  // a subnormal: these bits are zero
  }
  BigInteger result;
  result.add(of(mantissa), static_cast<unsigned>(shift));
  return result;
}

BigInteger BigInteger::power_of_two(unsigned power) {
  BigInteger result;
  result.add(of(1), power);
  return result;
}

void ExactReference::add(double x, uint64_t weight) {
  BigInteger& side = std::signbit(x) ? negative_ : positive_;
  side.add(BigInteger::of_double(x).times(weight));
}

bool ExactReference::rounds_to(double result, uint64_t n) const {
  BigInteger sum = positive_;
  BigInteger minus = negative_;
  if (std::signbit(result)) {
    std::swap(sum, minus);
  }
  const double size = std::fabs(result);
  const double largest = std::numeric_limits<double>::max();
  const auto scaled = [](double x) {
    return std::isinf(x) ? BigInteger::power_of_two(1024 + 1074) : BigInteger::of_double(x);
  };
  // With S the sum and m a middle between two neighbours: S / n >= m when 2 S >= 2 m n.
  const auto against_middle = [&](double low, double high) {
    BigInteger left = sum.times(2);
    BigInteger middle = scaled(low);
    middle.add(scaled(high));
    BigInteger right = middle.times(n);
    right.add(minus.times(2));
    return left.compare(right);
  };
  int exponent = 0;
  const double mantissa =
      std::ldexp(std::frexp(size, &exponent), 53 - std::max(0, -1021 - exponent));
  const bool even = std::isinf(size) || std::fmod(mantissa, 2) == 0;
  if (size == 0) {
    const int sign = sum.compare(minus);
    const bool sign_fits = std::signbit(result) ? sign > 0 : sign >= 0;
    return sign_fits && against_middle(0, std::nextafter(0.0, 1.0)) <= 0;
  }
  const int low = against_middle(std::isinf(size) ? largest : std::nextafter(size, 0.0), size);
  const int high = std::isinf(size) ? -1 : against_middle(size, std::nextafter(size, HUGE_VAL));
  return (low > 0 || (low == 0 && even)) && (high < 0 || (high == 0 && even));
}

}  // namespace muster::test
