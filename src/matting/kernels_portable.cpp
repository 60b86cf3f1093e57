#include "src/matting/all_kernels_internal.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace muster {

namespace {

struct PortableSimd {
  [[gnu::always_inline]] static uint32_t mask(const Bytes32& lanes) {
    static_assert(std::endian::native == std::endian::little);
    uint32_t bits = 0;
    for (int64_t i = 0; i < 4; ++i) {
      uint64_t eight = 0;
      __builtin_memcpy(&eight, reinterpret_cast<const uint8_t*>(&lanes) + 8 * i, 8);
      // The product moves the lowest bit of each byte to the top byte.
      const uint64_t gathered = (eight & 0x0101010101010101U) * 0x0102040810204080U >> 56U;
      bits |= static_cast<uint32_t>(gathered) << (8 * i);
    }
    return bits;
  }

  /// By halves: the compiler takes whole ones apart, lane by lane.
  template <typename Mask, typename V>
  [[gnu::always_inline]] static void less_equal(Mask& out, const V& one, const V& two) {
    using T = std::remove_cvref_t<decltype(one[0])>;
    using Half = Vector<T, 16 / static_cast<int>(sizeof(T))>;
    for (int offset = 0; offset < 32; offset += 16) {
      Half a;
      Half b;
      load(a, reinterpret_cast<const uint8_t*>(&one) + offset);
      load(b, reinterpret_cast<const uint8_t*>(&two) + offset);
      store(reinterpret_cast<uint8_t*>(&out) + offset, a <= b);
    }
  }

  [[gnu::always_inline]] static void square_root(Doubles4& values) {
    for (int lane = 0; lane < 4; ++lane) {
      values[lane] = std::sqrt(values[lane]);
    }
  }

  template <typename V, typename T>
  [[gnu::always_inline]] static void widen(V& lanes, const T* values) {
    for (size_t lane = 0; lane < sizeof(V) / sizeof(lanes[0]); ++lane) {
      lanes[lane] = values[lane];
    }
  }

  template <typename V>
  [[gnu::always_inline]] static void widen_mask(V& lanes, const uint8_t* masks) {
    for (size_t lane = 0; lane < sizeof(V) / sizeof(lanes[0]); ++lane) {
      lanes[lane] = masks[lane] != 0 ? -1 : 0;
    }
  }
};

}  // namespace

const Kernels& portable_kernels() {
  static const Kernels kernels = make_kernels<PortableSimd>();
  return kernels;
}

const Kernels& best_kernels() {
  const Kernels* avx2 = avx2_kernels();
  return avx2 != nullptr ? *avx2 : portable_kernels();
}

}  // namespace muster
