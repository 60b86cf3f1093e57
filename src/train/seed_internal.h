#pragma once

#include <muster/train/stage.h>

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace muster {

/// Seeds torch's default generators.
void seed_torch(uint64_t key);

/// Seeds them for a batch, so that it has the same random numbers whichever rank has it. `part` is
/// the loader of an evaluation, the epoch of a training.
void seed_for(int64_t seed, Stage stage, int64_t part, int64_t batch);

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
