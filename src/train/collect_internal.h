#pragma once

#include <muster/comm/group.h>
#include <muster/train/prediction_shard.h>

#include <functional>
#include <string_view>

namespace muster {

/// Gives `sink` all ranks' predictions in the order of keys; those of equal keys by rank. They
/// travel in rounds of bounded size; an empty sink gets none, but takes part. Every rank calls it
/// with its own shard.
void collect_in_order(
    Group& group, const PredictionShard& mine,
    const std::function<void(const PredictionKey& key, std::string_view bytes)>& sink);

}  // namespace muster
