#include "evaluate_internal.h"

#include <ATen/Context.h>

namespace muster {

void seed_torch(uint64_t key) { at::manual_seed(key); }

}  // namespace muster
