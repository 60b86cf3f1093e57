#pragma once

#include "src/matting/kernels_internal.h"
#include "src/matting/simd_internal.h"

// Rows of levels as bits, 64 pixels a word, for a policy.

namespace muster {

/// Bit i: lane i of the 64 bytes at `one` is above that of the bytes at `two`.
template <typename Simd>
[[gnu::always_inline]] inline uint64_t bits_above(const Bytes32 (&one)[2],
                                                  const Bytes32 (&two)[2]) {
  Bytes32 not_above[2];
  Simd::less_equal(not_above[0], one[0], two[0]);
  Simd::less_equal(not_above[1], one[1], two[1]);
  return ~(uint64_t{Simd::mask(not_above[1])} << 32U | Simd::mask(not_above[0]));
}

template <typename Simd>
[[gnu::always_inline]] inline void lower_of(Bytes32& out, const Bytes32& one, const Bytes32& two) {
  Bytes32 mask;
  Simd::less_equal(mask, one, two);
  select(out, mask, one, two);
}

template <typename Simd>
void find_changes(const uint8_t* row, int64_t words, uint64_t* bits) {
  for (int64_t word = 0; word < words; ++word) {
    uint64_t same = 0;
    for (int64_t half = 0; half < 2; ++half) {
      Bytes32 here;
      Bytes32 before;
      load(here, row + 64 * word + 32 * half);
      load(before, row + 64 * word + 32 * half - 1);
      Bytes32 equal;
      Simd::less_equal(equal, here ^ before, Bytes32{});
      same |= uint64_t{Simd::mask(equal)} << (32 * half);
    }
    bits[word] = ~same;
  }
}

template <typename Simd>
void find_peak_ends(const uint8_t* above, const uint8_t* here, int64_t words, uint64_t* bits) {
  uint64_t risen = 0;    // the last pixel of the word before rises
  uint64_t carried = 0;  // a rise of a word before waits for the next change
  for (int64_t word = 0; word < words; ++word) {
    Bytes32 now[2];
    Bytes32 before[2];
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t x = 64 * word + 32 * half;
      Bytes32 one;
      Bytes32 two;
      load(one, above + x);
      load(two, here + x);
      lower_of<Simd>(now[half], one, two);
      load(one, above + x - 1);
      load(two, here + x - 1);
      lower_of<Simd>(before[half], one, two);
    }
    const uint64_t rises = bits_above<Simd>(now, before);
    const uint64_t falls = bits_above<Simd>(before, now);
    // A one that is added behind a rise runs over all pixels without change, to the next that has
    // one.
    const uint64_t level = ~(rises | falls);
    unsigned long long sum = 0;
    const bool over = __builtin_add_overflow(level, rises << 1U | risen, &sum);
    const bool over_again = __builtin_add_overflow(sum, carried, &sum);
    bits[word] = sum & falls;
    carried = over || over_again ? 1 : 0;
    risen = rises >> 63U;
  }
}

}  // namespace muster
