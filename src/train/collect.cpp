#include "collect_internal.h"

#include <muster/base/check.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace muster {

namespace {

/// What all ranks together send in one round at most, unless a single prediction is larger.
constexpr int64_t bytes_a_round = int64_t{2} << 20U;

/// A prediction of some rank: small, since every rank knows all of them.
struct Item {
  PredictionKey key{};
  uint32_t rank = 0;
  uint32_t size = 0;
};

std::string packed(const PredictionShard& shard) {
  std::string bytes;
  bytes.reserve(shard.entries().size() * 3 * sizeof(int64_t));
  for (const auto& entry : shard.entries()) {
    check(entry.size <= std::numeric_limits<uint32_t>::max(),
          "the prediction for sample {} has {} bytes; at most 4 GiB can be gathered",
          entry.key.index, entry.size);
    const int64_t numbers[] = {entry.key.loader, entry.key.index, entry.size};
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  return bytes;
}

/// All ranks' predictions in order.
std::vector<Item> places_of(Group& group, const PredictionShard& mine) {
  constexpr size_t item_bytes = 3 * sizeof(int64_t);
  auto ranks = group.all_gather(packed(mine));
  size_t total = 0;
  for (const auto& rank : ranks) total += rank.bytes.size() / item_bytes;
  std::vector<Item> places;
  places.reserve(total);
  for (auto& rank : ranks) {
    const size_t count = rank.bytes.size() / item_bytes;
    for (size_t i = 0; i < count; ++i) {
      int64_t numbers[3];
      std::memcpy(numbers, rank.bytes.data() + i * sizeof numbers, sizeof numbers);
      places.push_back({.key = {numbers[0], numbers[1]},
                        .rank = static_cast<uint32_t>(rank.rank),
                        .size = static_cast<uint32_t>(numbers[2])});
    }
    std::string{}.swap(rank.bytes);
  }
  std::ranges::sort(places, {}, [](const Item& item) { return std::tie(item.key, item.rank); });
  return places;
}

}  // namespace

void collect_in_order(
    Group& group, const PredictionShard& mine,
    const std::function<void(const PredictionKey& key, std::string_view bytes)>& sink) {
  const auto places = places_of(group, mine);
  const auto own = static_cast<uint32_t>(group.rank());
  auto next = mine.entries().begin();
  for (size_t first = 0, end = 0; first < places.size(); first = end) {
    std::string payload;
    for (int64_t bytes = 0; end < places.size() && (end == first || bytes < bytes_a_round); ++end) {
      bytes += places[end].size;
      if (places[end].rank == own) payload += mine.read(*next++);
    }
    const auto parts = group.all_gather(payload);
    std::vector<size_t> taken(parts.size(), 0);
    for (size_t i = first; sink && i < end; ++i) {
      const Item& place = places[i];
      sink(place.key,
           std::string_view{parts[place.rank].bytes}.substr(taken[place.rank], place.size));
      taken[place.rank] += place.size;
    }
  }
}

}  // namespace muster
