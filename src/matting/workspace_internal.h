#pragma once

#include <muster/matting/errors.h>

#include "src/matting/connectivity_internal.h"
#include "src/matting/gradient_internal.h"
#include "src/matting/kernels_internal.h"

namespace muster {

struct MattingWorkspace::Buffers {
  const Kernels* kernels = &best_kernels();  // another instruction set gives the same bits
  Connectivity connectivity;
  Gradient gradient;
};

}  // namespace muster
