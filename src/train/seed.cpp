#include "seed_internal.h"

#include <muster/base/random.h>
#include <muster/train/environment.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include <bit>
#include <cstddef>
#include <mutex>
#include <optional>

namespace muster {

namespace {

/// Seeds the default generator of the CPU. at::manual_seed takes each of 624 words from the one
/// before it, which costs a microsecond, and a training seeds twice a step. Here they are the
/// stream of a generator.
void seed_cpu(uint64_t key) {
  at::mt19937_data_pod data;
  data.seed_ = key;
  data.left_ = 1;
  data.seeded_ = true;
  data.next_ = 0;
  Rng rng{key};
  for (size_t i = 0; i < data.state_.size(); i += 2) {
    const uint64_t words = rng();
    data.state_[i] = static_cast<uint32_t>(words);
    data.state_[i + 1] = static_cast<uint32_t>(words >> 32U);
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock{generator.mutex()};
  auto* cpu = generator.get<at::CPUGeneratorImpl>();
  // Its constructor would compute a state, to be thrown away.
  cpu->set_engine(std::bit_cast<at::mt19937>(data));
  cpu->set_next_float_normal_sample(std::nullopt);
  cpu->set_next_double_normal_sample(std::nullopt);
}

}  // namespace

void seed_torch(uint64_t key) { at::manual_seed(key); }

void seed_everything(int64_t seed) { seed_torch(static_cast<uint64_t>(seed)); }

void seed_for(int64_t seed, Stage stage, int64_t part, int64_t batch) {
  const uint64_t key = mix_key({static_cast<uint64_t>(seed), static_cast<uint64_t>(stage),
                                static_cast<uint64_t>(part), static_cast<uint64_t>(batch)});
  if (at::getAccelerator()) {
    seed_torch(key);
  }
  seed_cpu(key);
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
