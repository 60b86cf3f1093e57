#pragma once

#include "src/matting/gradient_kernels_internal.h"
#include "src/matting/kernels_internal.h"
#include "src/matting/level_kernels_internal.h"
#include "src/matting/row_kernels_internal.h"

namespace muster {

template <typename Simd>
Kernels make_kernels() {
  return {.bytes = make_row_kernels<Simd, uint8_t>(),
          .words = make_row_kernels<Simd, uint16_t>(),
          .floats = make_row_kernels<Simd, float>(),
          .doubles = make_row_kernels<Simd, double>(),
          .unit = make_strip_kernels<Simd, UnitFilter>(),
          .gaussian = make_strip_kernels<Simd, GaussianFilter>(),
          .changes = find_changes<Simd>,
          .peak_ends = find_peak_ends<Simd>,
          .stretch = stretch_values<Simd>};
}

}  // namespace muster
