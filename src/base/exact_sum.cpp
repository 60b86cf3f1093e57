#include <muster/base/check.h>
#include <muster/base/exact_sum.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace muster {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMostPending = uint64_t{1} << 30U;
constexpr uint64_t kDigitMask = 0xffffffffU;
constexpr size_t kLimbs = 70;  // as many as digits
using Limbs = std::array<uint32_t, kLimbs>;

/// A finite double as an integer: (-1)^negative * mantissa * 2^(scale - 1074).
struct Parts {
  uint64_t mantissa;
  unsigned scale;
  uint64_t sign;  ///< all ones when negative, else 0

  explicit Parts(uint64_t bits) : sign{0 - (bits >> 63U)} {
    const uint64_t exponent = (bits >> 52U) & 0x7ffU;
    const uint64_t normal = exponent == 0 ? 0 : 1;
    mantissa = (bits & ((uint64_t{1} << 52U) - 1)) | (normal << 52U);
    scale = static_cast<unsigned>(exponent - normal);
  }

  /// `digit` < 2^32 with the sign of the double.
  [[nodiscard]] int64_t with_sign(uint64_t digit) const {
    return static_cast<int64_t>((digit ^ sign) - sign);
  }
};

uint64_t saturating_add(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

/// Number of limbs up to the highest that is not zero.
size_t used(const Limbs& limbs) {
  size_t count = kLimbs;
  while (count > 0 && limbs[count - 1] == 0) {
    --count;
  }
  return count;
}

/// Divides in place and returns the remainder.
uint64_t divide(Limbs& limbs, uint64_t n) {
  uint64_t remainder = 0;
  if (n <= kDigitMask) {  // as it mostly is, and then a division of 64 bits will do
    for (size_t i = used(limbs); i-- > 0;) {
      const uint64_t part = (remainder << 32U) | limbs[i];
      limbs[i] = static_cast<uint32_t>(part / n);
      remainder = part % n;
    }
    return remainder;
  }
  for (size_t i = used(limbs); i-- > 0;) {
    const Wide part = (static_cast<Wide>(remainder) << 32U) | limbs[i];
    limbs[i] = static_cast<uint32_t>(part / n);
    remainder = static_cast<uint64_t>(part % n);
  }
  return remainder;
}

/// The 64 bits of `limbs` from bit `start` on.
uint64_t bits_from(const Limbs& limbs, size_t start) {
  const auto limb = [&](size_t i) -> uint64_t { return i < kLimbs ? limbs[i] : 0; };
  const size_t first = start / 32;
  const uint64_t bits = limb(first) | (limb(first + 1) << 32U);
  const size_t shift = start % 32;
  return shift == 0 ? bits : (bits >> shift) | (limb(first + 2) << (64 - shift));
}

bool any_bit_below(const Limbs& limbs, size_t end) {
  return std::any_of(limbs.begin(), limbs.begin() + static_cast<std::ptrdiff_t>(end / 32),
                     [](uint32_t limb) { return limb != 0; }) ||
         (limbs[end / 32] & ((uint64_t{1} << (end % 32)) - 1)) != 0;
}

/// The double nearest to (limbs + remainder / n) * 2^-1074, ties to even; remainder < n.
double round_once(const Limbs& limbs, uint64_t remainder, uint64_t n) {
  const size_t count = used(limbs);
  const size_t bits =
      count == 0 ? 0 : 32 * count - static_cast<size_t>(std::countl_zero(limbs[count - 1]));
  const size_t dropped = bits > 53 ? bits - 53 : 0;
  constexpr size_t kMostDropped = 2045;
  if (dropped > kMostDropped) {
    return std::numeric_limits<double>::infinity();
  }
  const uint64_t kept = bits_from(limbs, dropped) & ((uint64_t{1} << 53U) - 1);
  bool at_least_half = remainder >= n - remainder;
  bool tie = remainder == n - remainder;
  if (dropped > 0) {
    at_least_half = (bits_from(limbs, dropped - 1) & 1U) != 0;
    tie = at_least_half && remainder == 0 && !any_bit_below(limbs, dropped - 1);
  }
  const bool up = at_least_half && (!tie || (kept & 1U) != 0);
  // `kept` brings its leading bit along, which is the exponent's lowest step; so do subnormals,
  // whose encoding continues below without a break, and a carry out of the mantissa.
  return std::bit_cast<double>((static_cast<uint64_t>(dropped) << 52U) + kept + (up ? 1 : 0));
}

void put_varint(std::string& out, uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>((number & 0x7fU) | 0x80U);
    number >>= 7U;
  }
  out += static_cast<char>(number);
}

void check_packed(bool ok) {
  check(ok, ErrorKind::data,
        "these bytes are no packed exact sum; they are damaged, or another version wrote them");
}

uint64_t take_byte(std::string_view& bytes) {
  check_packed(!bytes.empty());
  const auto byte = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  return byte;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint64_t byte = take_byte(bytes);
    check_packed(shift < 63 || byte <= 1);
    number |= (byte & 0x7fU) << shift;
    if (byte < 0x80) {
      check_packed(byte != 0 || shift == 0);
      return number;
    }
  }
  check_packed(false);
  return number;
}

constexpr uint64_t kNegative = 1;
constexpr uint64_t kCounts = 2;

}  // namespace

/// The digits as one integer: sign and limbs of 32 bits, lowest first. Zero is not negative.
struct ExactSum::Magnitude {
  bool negative = false;
  Limbs limbs{};

  friend bool operator==(const Magnitude&, const Magnitude&) = default;
};

void ExactSum::add(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  if (!std::isfinite(x)) [[unlikely]] {
    add_special(x, 1);
    return;
  }
  const Parts parts{bits};
  const size_t digit = parts.scale / 32;
  const unsigned shift = parts.scale % 32;
  const uint64_t rest = parts.mantissa >> (32 - shift);
  digits_[digit] += parts.with_sign((parts.mantissa << shift) & kDigitMask);
  digits_[digit + 1] += parts.with_sign(rest & kDigitMask);
  digits_[digit + 2] += parts.with_sign(rest >> 32U);
  note_addition(1);
}

void ExactSum::add(double x, int64_t weight) {
  check(weight >= 0, "the weight of a value in a sum must not be negative, but it is {}", weight);
  if (weight == 0) {
    return;
  }
  if (!std::isfinite(x)) [[unlikely]] {
    add_special(x, static_cast<uint64_t>(weight));
    return;
  }
  const Parts parts{std::bit_cast<uint64_t>(x)};
  const Wide product = static_cast<Wide>(parts.mantissa) * static_cast<uint64_t>(weight);
  const unsigned shift = parts.scale % 32;
  size_t digit = parts.scale / 32;
  digits_[digit] += parts.with_sign(static_cast<uint64_t>(product << shift) & kDigitMask);
  for (Wide rest = product >> (32 - shift); rest != 0; rest >>= 32U) {
    digits_[++digit] += parts.with_sign(static_cast<uint64_t>(rest) & kDigitMask);
  }
  note_addition(1);
}

void ExactSum::add_special(double x, uint64_t weight) {
  uint64_t& count = std::isnan(x) ? nans_ : x > 0 ? positive_infinities_ : negative_infinities_;
  count = saturating_add(count, weight);
}

void ExactSum::merge(const ExactSum& other) {
  const uint64_t additions = other.pending_ + 1;
  if (pending_ + additions >= kMostPending) {
    carry();
  }
  for (size_t i = 0; i < kDigits; ++i) {
    digits_[i] += other.digits_[i];
  }
  note_addition(additions);
  nans_ = saturating_add(nans_, other.nans_);
  positive_infinities_ = saturating_add(positive_infinities_, other.positive_infinities_);
  negative_infinities_ = saturating_add(negative_infinities_, other.negative_infinities_);
}

void ExactSum::note_addition(uint64_t additions) {
  pending_ += additions;
  if (pending_ >= kMostPending) [[unlikely]] {
    carry();
  }
}

/// Brings every digit but the last, which keeps the sign, into [0, 2^32). Most sums touch a few
/// neighbours only, and what lies beyond them has nothing to carry.
void ExactSum::carry() {
  size_t end = kDigits - 1;
  while (end > 0 && digits_[end - 1] == 0) {
    --end;
  }
  for (size_t i = 0; i + 1 < kDigits && (i < end || digits_[i] != 0); ++i) {
    digits_[i + 1] += digits_[i] >> 32U;
    digits_[i] &= static_cast<int64_t>(kDigitMask);
  }
  pending_ = 0;
}

ExactSum::Magnitude ExactSum::magnitude() const {
  ExactSum copy = *this;
  copy.carry();
  Magnitude result;
  result.negative = copy.digits_.back() < 0;
  if (result.negative) {
    for (int64_t& digit : copy.digits_) {
      digit = -digit;
    }
    copy.carry();
  }
  for (size_t i = 0; i < kDigits; ++i) {
    result.limbs[i] = static_cast<uint32_t>(copy.digits_[i] & static_cast<int64_t>(kDigitMask));
  }
  return result;
}

bool ExactSum::is_special(double& result) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (nans_ > 0 || (positive_infinities_ > 0 && negative_infinities_ > 0)) {
    result = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (positive_infinities_ > 0 || negative_infinities_ > 0) {
    result = positive_infinities_ > 0 ? kInfinity : -kInfinity;
    return true;
  }
  return false;
}

double ExactSum::sum() const { return mean(1); }

double ExactSum::mean(int64_t n) const {
  check(n >= 1, "a mean needs at least one value, not {}", n);
  double result = 0;
  if (is_special(result)) {
    return result;
  }
  Magnitude total = magnitude();
  const auto count = static_cast<uint64_t>(n);
  const uint64_t remainder = divide(total.limbs, count);
  result = round_once(total.limbs, remainder, count);
  return total.negative ? -result : result;
}

// Packed: flags, number of limbs, then if there are any the index of the first and the limbs,
// little endian; at last, if flagged, the three counts.
std::string ExactSum::pack() const {
  const Magnitude total = magnitude();
  const size_t end = used(total.limbs);
  size_t first = 0;
  while (first < end && total.limbs[first] == 0) {
    ++first;
  }
  const bool counts = (nans_ | positive_infinities_ | negative_infinities_) != 0;
  std::string out;
  out += static_cast<char>((total.negative ? kNegative : 0) | (counts ? kCounts : 0));
  out += static_cast<char>(end - first);
  if (end > first) {
    out += static_cast<char>(first);
  }
  for (size_t i = first; i < end; ++i) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      out += static_cast<char>((total.limbs[i] >> shift) & 0xffU);
    }
  }
  if (counts) {
    put_varint(out, nans_);
    put_varint(out, positive_infinities_);
    put_varint(out, negative_infinities_);
  }
  return out;
}

ExactSum ExactSum::unpack(std::string_view& bytes) {
  std::string_view rest = bytes;
  const uint64_t flags = take_byte(rest);
  const uint64_t count = take_byte(rest);
  const uint64_t first = count > 0 ? take_byte(rest) : 0;
  check_packed((flags & ~(kNegative | kCounts)) == 0 && first + count <= kLimbs);
  check_packed(rest.size() >= 4 * count);
  ExactSum sum;
  const int64_t sign = (flags & kNegative) != 0 ? -1 : 1;
  for (size_t i = first; i < first + count; ++i) {
    uint64_t limb = 0;
    for (unsigned byte = 0; byte < 4; ++byte) {
      limb |= static_cast<uint64_t>(static_cast<unsigned char>(rest[byte])) << (8 * byte);
    }
    rest.remove_prefix(4);
    sum.digits_[i] = sign * static_cast<int64_t>(limb);
  }
  // Only what pack() writes: no zeros at the ends, no negative zero.
  check_packed(count == 0 ? (flags & kNegative) == 0
                          : sum.digits_[first] != 0 && sum.digits_[first + count - 1] != 0);
  if ((flags & kCounts) != 0) {
    sum.nans_ = take_varint(rest);
    sum.positive_infinities_ = take_varint(rest);
    sum.negative_infinities_ = take_varint(rest);
    check_packed((sum.nans_ | sum.positive_infinities_ | sum.negative_infinities_) != 0);
  }
  bytes = rest;
  return sum;
}

bool operator==(const ExactSum& a, const ExactSum& b) {
  return a.nans_ == b.nans_ && a.positive_infinities_ == b.positive_infinities_ &&
         a.negative_infinities_ == b.negative_infinities_ && a.magnitude() == b.magnitude();
}

}  // namespace muster
