#pragma once

#include <muster/comm/group.h>
#include <muster/value/convert.h>
#include <muster/value/value.h>

#include <source_location>
#include <vector>

namespace muster {

/// What every present rank gave, in rank order. T is anything that `to_value` takes: numbers,
/// strings, tensors, containers and plain structs of them; shapes and lengths may differ between
/// ranks. Tensors come back on the CPU, in memory of their own. Errors as `Group::all_gather`.
template <class T>
std::vector<T> gather(Group& group, const T& mine,
                      std::source_location where = std::source_location::current()) {
  const auto contributions = group.all_gather(to_bytes(to_value(mine)), where);
  std::vector<T> all;
  all.reserve(contributions.size());
  for (const auto& contribution : contributions) {
    all.push_back(from_value<T>(from_bytes(contribution.bytes)));
  }
  return all;
}

/// What rank `root` gave, of any type that `gather` takes. Errors as `Group::broadcast`.
template <class T>
T broadcast(Group& group, const T& mine, int root = 0,
            std::source_location where = std::source_location::current()) {
  const bool is_root = group.rank() == root;
  return from_value<T>(
      from_bytes(group.broadcast(is_root ? to_bytes(to_value(mine)) : "", root, where)));
}

}  // namespace muster
