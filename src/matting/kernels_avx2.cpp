// Compiled for AVX2, where there is one (see CMakeLists.txt).
#include "src/matting/kernels_internal.h"

#if defined(__AVX2__)

#include "src/matting/all_kernels_internal.h"

#include <immintrin.h>

namespace muster {

namespace {

struct Avx2Simd {
  [[gnu::always_inline]] static uint32_t mask(const Bytes32& lanes) {
    return static_cast<uint32_t>(_mm256_movemask_epi8((__m256i)lanes));
  }

  template <typename Mask, typename V>
  [[gnu::always_inline]] static void less_equal(Mask& out, const V& one, const V& two) {
    out = (Mask)(one <= two);
  }

  [[gnu::always_inline]] static void square_root(Doubles4& values) {
    values = _mm256_sqrt_pd(values);
  }

  [[gnu::always_inline]] static void widen(Integers8& lanes, const uint8_t* values) {
    lanes = (Integers8)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)values));
  }
  [[gnu::always_inline]] static void widen(Integers8& lanes, const uint16_t* values) {
    lanes = (Integers8)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)values));
  }

  [[gnu::always_inline]] static void widen(Doubles4& lanes, const uint8_t* values) {
    lanes = _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_loadu_si32(values)));
  }
  [[gnu::always_inline]] static void widen(Doubles4& lanes, const uint16_t* values) {
    lanes = _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i*)values)));
  }
  [[gnu::always_inline]] static void widen(Doubles4& lanes, const float* values) {
    lanes = _mm256_cvtps_pd(_mm_loadu_ps(values));
  }
  [[gnu::always_inline]] static void widen(Doubles4& lanes, const double* values) {
    lanes = _mm256_loadu_pd(values);
  }

  [[gnu::always_inline]] static void widen_mask(Integers8& lanes, const uint8_t* masks) {
    lanes = (Integers8)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)masks));
  }
  [[gnu::always_inline]] static void widen_mask(Masks4& lanes, const uint8_t* masks) {
    lanes = (Masks4)_mm256_cvtepi8_epi64(_mm_loadu_si32(masks));
  }
};

}  // namespace

const Kernels* avx2_kernels() {
  static const Kernels kernels = make_kernels<Avx2Simd>();
  return __builtin_cpu_supports("avx2") ? &kernels : nullptr;
}

}  // namespace muster

#else

namespace muster {

const Kernels* avx2_kernels() { return nullptr; }

}  // namespace muster

#endif
