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

  [[gnu::always_inline]] static void square_root(Doubles4& values) {
    values = _mm256_sqrt_pd(values);
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
