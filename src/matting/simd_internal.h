#pragma once

#include <cstdint>

// Vectors of a fixed count of lanes, in the compiler's own vector language: one source gives the
// same operations in the same order for every instruction set, and so the same bits. What has no
// operator is asked of a policy `Simd`:
//   static uint32_t mask(const Bytes32&)   bit i: lane i is 255 (lanes are 0 or 255)
//   static void less_equal(Mask&, const V& one, const V& two)   all bits of the lanes, or none
//   static void square_root(Doubles4&)
//   static void widen(Integers8&, const uint8_t* or const uint16_t*)   as many values as lanes
//   static void widen(Doubles4&, const T*)
//   static void widen_mask(Integers8& or Masks4&, const uint8_t*)      255 and 0 to all bits and
//   none
// Everything is inlined: a function that was compiled for one instruction set must not be taken by
// the linker where another is meant. The kernels use nothing of the standard library for this
// reason.

namespace muster {

template <typename T, int lanes>
struct VectorOf {
  using type [[gnu::vector_size(sizeof(T) * lanes)]] = T;
};
template <typename T, int lanes>
using Vector = typename VectorOf<T, lanes>::type;

using Bytes32 = Vector<uint8_t, 32>;
using Integers8 = Vector<int32_t, 8>;
using Masks4 = Vector<int64_t, 4>;
using Doubles4 = Vector<double, 4>;

template <typename V>
[[gnu::always_inline]] inline void load(V& vector, const void* from) {
  __builtin_memcpy(&vector, from, sizeof(V));
}

template <typename V>
[[gnu::always_inline]] inline void store(void* to, const V& vector) {
  __builtin_memcpy(to, &vector, sizeof(V));
}

/// Lanes of `one` where the mask has all bits, of `two` where it has none.
template <typename Mask, typename V>
[[gnu::always_inline]] inline void select(V& out, const Mask& mask, const V& one, const V& two) {
  out = (V)(((Mask)one & mask) | ((Mask)two & ~mask));
}

/// One value in all lanes. (x - 0 is x for every x; 0 + x is not, and would be worked out.)
template <typename V, typename T>
[[gnu::always_inline]] inline void fill(V& vector, T value) {
  vector = value - V{};
}

}  // namespace muster
