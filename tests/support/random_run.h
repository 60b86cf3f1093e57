#pragma once

#include <muster/comm/group.h>

#include <cstdint>
#include <string>

/// Evaluations drawn at random: data, loaders, limits, and hooks that log on random ranks. Whatever
/// is drawn, a run folder must have the same files at every number of ranks.
namespace muster::test {

/// What may go wrong where there are several ranks, planted to see that it shows.
enum class Fault { none, repeated_sample, dropped_sample, swapped_images, mean_of_means };

/// Of draw `seed`: 2 to 7.
int ranks_of_draw(uint64_t seed);

/// Evaluates draw `seed` on the ranks of `group`, into `run_dir`. Whether the fault was planted: it
/// is not on a group of one, nor where the draw has no place for it. All ranks call it.
bool run_draw(uint64_t seed, Fault fault, const std::string& run_dir, Group group);

}  // namespace muster::test
