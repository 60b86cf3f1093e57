#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// What a run is computed with, as JSON: processor, instruction set, torch, threads, devices, world
/// size. Where two runs differ in their bits, the reason is likely here.
std::string environment_json(int world_size);

/// The cores that this process may use where it shares the host with other ranks of its job.
int cores_of_this_rank();

/// Sets torch's compute threads of this process; once, before any other thread starts. 0 is the
/// rank's share of the cores.
void set_compute_threads(int64_t threads);

/// Seeds torch's default generators, so that weights made from here on depend on the seed alone and
/// are the same on every rank.
void seed_everything(int64_t seed);

}  // namespace muster
