#include "seed_internal.h"

#include <muster/base/random.h>
#include <muster/train/environment.h>

#include <ATen/Context.h>

#include <mutex>

namespace muster {

void seed_torch(uint64_t key) { at::manual_seed(key); }

void seed_everything(int64_t seed) { seed_torch(static_cast<uint64_t>(seed)); }

void seed_for(int64_t seed, Stage stage, int64_t part, int64_t batch) {
  seed_torch(mix_key({static_cast<uint64_t>(seed), static_cast<uint64_t>(stage),
                      static_cast<uint64_t>(part), static_cast<uint64_t>(batch)}));
}

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
