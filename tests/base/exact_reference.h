#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::test {

/// A non-negative integer of any size, written for clarity: digits of 16 bits, lowest first.
class BigInteger {
 public:
  void add(const BigInteger& other, unsigned shift = 0);
  [[nodiscard]] BigInteger times(uint64_t factor) const;
  /// -1, 0 or 1 as this is less than, equal to or more than `other`.
  [[nodiscard]] int compare(const BigInteger& other) const;

  static BigInteger of(uint64_t number);
  /// |x| / 2^-1074, which is a whole number for every finite double.
  static BigInteger of_double(double x);
  /// 2^`power`.
  static BigInteger power_of_two(unsigned power);

 private:
  [[nodiscard]] uint64_t digit(size_t i) const { return i < digits_.size() ? digits_[i] : 0; }

  std::vector<uint32_t> digits_{};
};

/// A sum of doubles kept exactly, positive and negative ones apart. It does not round: it tells
/// whether a double is what the exact quotient rounds to.
class ExactReference {
 public:
  void add(double x, uint64_t weight = 1);
  /// Whether `result` is the sum divided by `n`, rounded to nearest with ties to even.
  [[nodiscard]] bool rounds_to(double result, uint64_t n) const;

 private:
  BigInteger positive_{};
  BigInteger negative_{};
};

}  // namespace muster::test
