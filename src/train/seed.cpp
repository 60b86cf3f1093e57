#include "seed_internal.h"

#include <muster/train/environment.h>

#include <ATen/Context.h>

#include <mutex>

namespace muster {

void seed_torch(uint64_t key) { at::manual_seed(key); }

void seed_everything(int64_t seed) { seed_torch(static_cast<uint64_t>(seed)); }

GeneratorGuard::GeneratorGuard() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard lock{generator.mutex()};
  state_ = generator.get_state();
}

GeneratorGuard::~GeneratorGuard() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard lock{generator.mutex()};
  generator.set_state(state_);
}

}  // namespace muster
