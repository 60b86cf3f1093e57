#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// A sum of doubles without rounding: whatever the order of adding and the split among
/// accumulators, the result is the same. `docs/exact-sums.md` says how. A value type of about 600
/// bytes that does not allocate; not thread-safe.
///
/// It holds for up to 2^63 additions of finite doubles, each with a weight below 2^63. NaN and
/// infinities are counted beside the sum.
class ExactSum {
 public:
  /// Adds `x`, exactly.
  void add(double x);
  /// Adds `x` * `weight`, exactly: what `weight` calls of add(x) do. Weight 0 adds nothing, not
  /// even NaN; a negative one is an Error.
  void add(double x, int64_t weight);
  /// Adds what `other` holds.
  void merge(const ExactSum& other);

  /// The sum, rounded once: to nearest, ties to even; infinite beyond the largest double. NaN when
  /// a NaN or infinities of both signs were added. A sum of exactly zero is +0.
  [[nodiscard]] double sum() const;
  /// The sum divided by `n` >= 1, rounded once. Finite also where the sum itself exceeds the
  /// largest double.
  [[nodiscard]] double mean(int64_t n) const;

  /// The state as bytes, equal for equal states whatever the order of adding. A mean of values of
  /// similar size takes 10 to 30 bytes, the worst case about 320.
  [[nodiscard]] std::string pack() const;
  /// Takes one packed state from the front of `bytes`. Error of kind `data`, `bytes` untouched,
  /// when there is none.
  static ExactSum unpack(std::string_view& bytes);

  /// The same sum and the same counts of NaN and infinities.
  friend bool operator==(const ExactSum& a, const ExactSum& b);

 private:
  static constexpr size_t kDigits = 70;
  struct Magnitude;

  void add_special(double x, uint64_t weight);
  void note_addition(uint64_t additions);
  void carry();
  [[nodiscard]] Magnitude magnitude() const;
  [[nodiscard]] bool is_special(double& result) const;

  /// The sum is that of digits_[i] * 2^(32 i - 1074). Digits are signed and overlap until carried.
  std::array<int64_t, kDigits> digits_{};
  /// No digit but the last exceeds (pending_ + 1) * 2^32 in magnitude.
  uint64_t pending_ = 0;
  uint64_t nans_ = 0;
  uint64_t positive_infinities_ = 0;
  uint64_t negative_infinities_ = 0;
};

}  // namespace muster
