#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace muster {

/// Seeds torch's default generators.
void seed_torch(uint64_t key);

/// Puts torch's default generator of the CPU back to where it was, so that an evaluation between
/// two training steps leaves their random numbers alone.
class GeneratorGuard {
 public:
  GeneratorGuard();
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;
  ~GeneratorGuard();

 private:
  at::Tensor state_;
};

}  // namespace muster
