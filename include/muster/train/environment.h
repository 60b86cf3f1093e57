#pragma once

#include <string>

namespace muster {

/// What a run is computed with, as JSON: processor, instruction set, torch, threads, devices, world
/// size. Where two runs differ in their bits, the reason is likely here.
std::string environment_json(int world_size);

/// Sets torch's compute threads of this process; once, before any other thread starts. 0 is the
/// rank's share of the cores.
void set_compute_threads(int64_t threads);

}  // namespace muster
