#include "src/matting/connectivity_internal.h"

#include "src/matting/simd_internal.h"

#include <algorithm>
#include <bit>

namespace muster {

namespace {

constexpr int64_t take_step = 32;

}  // namespace

void Connectivity::begin(int64_t width, int64_t height, MattingProfile profile,
                         const Kernels& kernels) {
  profile_ = profile;
  tree_.begin(width, height, profile == MattingProfile::matlab, kernels);
  pixels_of_.fill(0);
  pixels_of_[0] = width * height;
  row_.resize(static_cast<size_t>(width + 2 * take_step));
  row_taken_ = 0;
  run_taken_ = 0;
}

void Connectivity::solve() {
  tree_.finish();
  sort_components();
  find_winners();
  const Chain chain = find_chain();
  set_reach(chain);
  set_tenths(chain);
}

void Connectivity::sort_components() {
  const auto& nodes = tree_.nodes();
  const uint8_t* level = nodes.level.data();
  const uint32_t* size = nodes.size.data();
  std::array<uint32_t, levels + 1> count{};
  for (uint32_t node = LevelTree::first_node; node < nodes.count; ++node) {
    count[level[node]] += size[node] > 0 ? 1 : 0;
    pixels_of_[level[node]] += size[node];
    pixels_of_[0] -= size[node];
  }
  uint32_t place = 0;
  for (int i = levels; i >= 1; --i) {
    first_of_level_[i] = place;
    place += count[i];
  }
  first_of_level_[0] = place;
  sorted_.need(place + 1);  // and one place for all aliases
  auto next = first_of_level_;
  for (uint32_t node = LevelTree::first_node; node < nodes.count; ++node) {
    const bool is_alias = size[node] == 0;
    sorted_.data()[is_alias ? place : next[level[node]]] = node;
    next[level[node]] += is_alias ? 0 : 1;
  }
}

/// Sizes become those of whole components, and no node has an alias for its parent.
void Connectivity::find_winners() {
  auto& nodes = tree_.nodes();
  uint32_t* parent = nodes.parent.data();
  uint32_t* size = nodes.size.data();
  uint32_t* rank = nodes.rank.data();
  Winner best;
  for (int level = levels; level >= 1; --level) {
    for (uint32_t i = first_of_level_[level]; i < first_of_level_[level - 1]; ++i) {
      const uint32_t node = sorted_.data()[i];
      if (size[node] > best.size || (size[node] == best.size && rank[node] < best.rank)) {
        best = {size[node], rank[node], node};
      }
      uint32_t above = parent[node];
      above = size[above] == 0 ? parent[above] : above;
      parent[node] = above;
      size[above] += size[node];
      rank[above] = std::min(rank[above], rank[node]);
    }
    winner_[level] = best;
  }
}

/// Whether O_level lies in O_{level - 1}.
bool Connectivity::is_nested(int level) {
  const auto& nodes = tree_.nodes();
  uint32_t node = winner_[level].node;
  while (nodes.level.data()[nodes.parent.data()[node]] >= level - 1) {
    node = nodes.parent.data()[node];
  }
  return node == winner_[level - 1].node;
}

Connectivity::Chain Connectivity::find_chain() {
  int64_t outside = pixels_of_[0];
  Chain chain;
  for (int next = 1; next <= levels; ++next) {
    if (profile_ == MattingProfile::gca && outside >= winner_[next].size) {
      chain.background_next = true;
      return chain;
    }
    if (winner_[next].size == 0) {
      return chain;
    }
    if (next > 1 && !is_nested(next)) {
      chain.broken = true;
      return chain;
    }
    chain.end = next;
    outside += pixels_of_[next];
  }
  return chain;
}

/// B of every node that is no alias: the highest level at which it is connected to O_K, at most K;
/// 0 without a chain.
void Connectivity::set_reach(const Chain& chain) {
  constexpr uint8_t unset = 255;
  const auto& nodes = tree_.nodes();
  const uint32_t* parent = nodes.parent.data();
  const uint8_t* level = nodes.level.data();
  tenths_.need(nodes.count);
  uint8_t* reach = tenths_.data();
  std::fill_n(reach, nodes.count, unset);
  reach[LevelTree::root] = 0;
  if (chain.end > 0) {
    const uint32_t seed = winner_[chain.end].node;
    reach[seed] = static_cast<uint8_t>(chain.end);
    for (uint32_t node = parent[seed]; node != LevelTree::root; node = parent[node]) {
      reach[node] = level[node];
    }
  }
  for (uint32_t i = first_of_level_[0]; i > 0; --i) {
    const uint32_t node = sorted_.data()[i - 1];
    if (reach[node] == unset) {
      reach[node] = reach[parent[node]];
    }
  }
}

/// From B to l: what is in to the end of the chain has l = K, or 10 where the convention lets it
/// stay.
void Connectivity::set_tenths(const Chain& chain) {
  const auto& nodes = tree_.nodes();
  const uint8_t* level = nodes.level.data();
  const auto end = static_cast<uint8_t>(chain.end);
  const bool stays = chain.end == levels || (profile_ == MattingProfile::p3m && !chain.broken);
  const auto tenths_of = [&](uint32_t node, uint8_t reach) {
    const bool in_background = chain.background_next && level[node] == end;
    return reach == end && (stays || in_background) ? uint8_t{levels} : reach;
  };
  uint8_t* tenths = tenths_.data();
  tenths[LevelTree::root] = tenths_of(LevelTree::root, 0);
  for (uint32_t i = 0; i < first_of_level_[0]; ++i) {
    const uint32_t node = sorted_.data()[i];
    tenths[node] = tenths_of(node, tenths[node]);
  }
  for (uint32_t node = LevelTree::first_node; node < nodes.count; ++node) {
    const uint32_t is_alias = nodes.size.data()[node] == 0 ? ~0U : 0U;
    tenths[node] = tenths[(nodes.parent.data()[node] & is_alias) | (node & ~is_alias)];
  }
}

const uint8_t* Connectivity::take_row() {
  const uint64_t* starts = tree_.run_starts(row_taken_++);
  const uint32_t* node_of_run = tree_.node_of_run();
  const uint8_t* tenths = tenths_.data();
  int64_t begin = 0;
  int64_t run = run_taken_;
  const auto end_run = [&](int64_t end) {
    Bytes32 value;
    fill(value, tenths[node_of_run[run]]);
    for (int64_t x = begin; x < end; x += take_step) {
      store(row_.data() + x, value);
    }
    begin = end;
    ++run;
  };
  for (int64_t word = 0; word < tree_.words(); ++word) {
    uint64_t bits = word == 0 ? starts[0] & ~uint64_t{1} : starts[word];
    for (; bits != 0; bits &= bits - 1) {
      end_run(64 * word + std::countr_zero(bits));
    }
  }
  end_run(tree_.width());
  run_taken_ = run;
  return row_.data();
}

}  // namespace muster
