#pragma once

#include "src/matting/kernels_internal.h"
#include "src/matting/simd_internal.h"

// Rows of levels as bits, 64 pixels a word, for a policy.

namespace muster {

/// Bit i: lane i of the 64 bytes at `one` is above that of the bytes at `two`.
template <typename Simd>
[[gnu::always_inline]] inline uint64_t bits_above(const Bytes32 (&one)[2],
                                                  const Bytes32 (&two)[2]) {
  const uint64_t low = Simd::mask((Bytes32)(one[0] > two[0]));
  const uint64_t high = Simd::mask((Bytes32)(one[1] > two[1]));
  return high << 32U | low;
}

template <typename Simd>
void find_changes(const uint8_t* row, int64_t words, uint64_t* bits) {
  for (int64_t word = 0; word < words; ++word) {
    uint64_t same = 0;
    for (int half = 0; half < 2; ++half) {
      Bytes32 here;
      Bytes32 before;
      load(here, row + 64 * word + 32 * half);
      load(before, row + 64 * word + 32 * half - 1);
      same |= uint64_t{Simd::mask((Bytes32)(here == before))} << (32 * half);
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
    for (int half = 0; half < 2; ++half) {
      const int64_t x = 64 * word + 32 * half;
      Bytes32 one;
      Bytes32 two;
      load(one, above + x);
      load(two, here + x);
      now[half] = one < two ? one : two;
      load(one, above + x - 1);
      load(two, here + x - 1);
      before[half] = one < two ? one : two;
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
