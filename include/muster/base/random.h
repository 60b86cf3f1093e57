#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

namespace muster {

namespace detail {

constexpr uint64_t golden = 0x9e3779b97f4a7c15U;

/// The output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014): one-to-one, every input bit reaches every output bit.
constexpr uint64_t scramble(uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace detail

/// One 64-bit key from several numbers (seed, epoch, index, ...); equal for equal numbers in equal
/// order on every machine, and well mixed: neighbours in any number give unrelated keys.
uint64_t mix_key(std::initializer_list<uint64_t> parts);

/// A small generator that is the same on every machine and compiler (SplitMix64; its stream depends
/// on the key alone). A UniformRandomBitGenerator, but std's distributions differ by library: use
/// the members.
class Rng {
 public:
  using result_type = uint64_t;

  explicit Rng(uint64_t key) : state_{key} {}
  /// From several numbers their mix_key; a single one is the key itself, as in parentheses.
  explicit Rng(std::initializer_list<uint64_t> parts)
      : state_{parts.size() == 1 ? *parts.begin() : mix_key(parts)} {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() {
    state_ += detail::golden;
    return detail::scramble(state_);
  }

  /// In [0, bound), without bias; bound >= 1.
  int64_t below(int64_t bound);
  /// In [0, 1), a multiple of 2^-53.
  double uniform();
  /// In [low, high), and `low` where both are equal; finite bounds, the lower one first.
  double uniform(double low, double high);
  /// Normal with mean 0 and standard deviation 1 (Box and Muller, two draws). It uses no function
  /// of the C library whose last bit depends on the processor.
  double normal();
  /// A random order in place (Fisher and Yates).
  void shuffle(std::span<int64_t> items);

 private:
  uint64_t state_;
};

}  // namespace muster
