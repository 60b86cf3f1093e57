#include "src/matting/connectivity_internal.h"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr uint8_t unknown_reach = 255;

}  // namespace

void Connectivity::begin(int64_t width, int64_t height) {
  width_ = width;
  height_ = height;
  start_.clear();
  level_.clear();
  pixels_of_.fill(0);
  position_ = 0;
  append_run(0);
  position_ = static_cast<uint32_t>(width);
}

void Connectivity::append_run(uint8_t level) {
  start_.push_back(position_);
  level_.push_back(level);
}

void Connectivity::add_row(const uint8_t* levels) {
  append_run(0);
  int64_t begin = 0;
  while (begin < width_) {
    const uint8_t level = levels[begin];
    int64_t end = begin + 1;
    while (end < width_ && levels[end] == level) {
      ++end;
    }
    append_run(level);
    pixels_of_[level] += end - begin;
    position_ += static_cast<uint32_t>(end - begin);
    begin = end;
  }
}

void Connectivity::solve(MattingProfile profile) {
  append_run(0);
  position_ += static_cast<uint32_t>(width_);
  start_.push_back(position_);

  link_rows();
  sort_runs();
  prepare_ranks(profile == MattingProfile::matlab);
  join_levels();
  const Chain chain = find_chain(profile);
  if (chain.end > 0) {
    measure_reach(winner_[chain.end].run);
  } else {
    std::fill(reach_.begin(), reach_.end(), uint8_t{0});
  }
  apply(chain, profile);
  taken_ = 1;
}

void Connectivity::link_rows() {
  const auto runs = static_cast<uint32_t>(level_.size());
  const auto width = static_cast<uint32_t>(width_);
  above_.resize(runs);
  below_.resize(runs);
  uint32_t above = 0;
  uint32_t below = 0;
  for (uint32_t run = 1; run + 1 < runs; ++run) {
    while (start_[above + 1] + width <= start_[run]) {
      ++above;
    }
    above_[run] = above;
    while (start_[below + 1] <= start_[run] + width) {
      ++below;
    }
    below_[run] = below;
  }
}

void Connectivity::sort_runs() {
  std::array<uint32_t, levels + 1> count{};
  for (const uint8_t level : level_) {
    ++count[level];
  }
  uint32_t place = 0;
  for (int level = levels; level >= 1; --level) {
    first_of_level_[level] = place;
    place += count[level];
  }
  first_of_level_[0] = place;
  sorted_.resize(place);
  auto next = first_of_level_;
  for (uint32_t run = 0; run < level_.size(); ++run) {
    if (level_[run] > 0) {
      sorted_[next[level_[run]]++] = run;
    }
  }
}

void Connectivity::prepare_ranks(bool by_column) {
  const auto runs = static_cast<uint32_t>(level_.size());
  parent_.resize(runs);
  size_.resize(runs);
  joined_to_.resize(runs);
  joined_level_.assign(runs, 0);
  reach_.resize(runs);
  rank_.clear();
  for (uint32_t run = 0; run < runs; ++run) {
    parent_[run] = run;
    size_[run] = start_[run + 1] - start_[run];
  }
  if (by_column) {
    const auto width = static_cast<uint32_t>(width_);
    const auto height = static_cast<uint32_t>(height_);
    rank_.resize(runs);
    for (uint32_t run = 1; run + 1 < runs; ++run) {
      rank_[run] = start_[run] % width * height + (start_[run] / width - 1);
    }
  }
}

void Connectivity::join_levels() {
  best_ = {};
  nested_.fill(false);
  for (int level = levels; level >= 1; --level) {
    for (uint32_t i = first_of_level_[level]; i < first_of_level_[level - 1]; ++i) {
      join_neighbours(sorted_[i]);
      // The last run that changed a component sees it complete, and a component that grew later is
      // larger.
      consider(find(sorted_[i]));
    }
    winner_[level] = best_;
    if (level < levels && winner_[level + 1].size > 0) {
      nested_[level + 1] = find(winner_[level + 1].run) == find(best_.run);
    }
  }
}

void Connectivity::join_neighbours(uint32_t run) {
  const uint8_t level = level_[run];
  const auto width = static_cast<uint32_t>(width_);
  const uint32_t end = start_[run + 1];
  // Of two runs of one level the later does the union.
  for (uint32_t other = above_[run]; start_[other] + width < end; ++other) {
    if (level_[other] >= level) {
      join(run, other, level);
    }
  }
  if (level_[run - 1] > level) {
    join(run, run - 1, level);
  }
  if (level_[run + 1] > level) {
    join(run, run + 1, level);
  }
  for (uint32_t other = below_[run]; start_[other] < end + width; ++other) {
    if (level_[other] > level) {
      join(run, other, level);
    }
  }
}

void Connectivity::join(uint32_t run, uint32_t other, uint8_t level) {
  const uint32_t one = find(run);
  const uint32_t two = find(other);
  if (one == two) {
    return;
  }
  const uint32_t root = std::min(one, two);
  const uint32_t child = std::max(one, two);
  parent_[child] = root;
  size_[root] += size_[child];
  joined_to_[child] = root;
  joined_level_[child] = level;
  if (!rank_.empty()) {
    rank_[root] = std::min(rank_[root], rank_[child]);
  }
}

void Connectivity::consider(uint32_t root) {
  const uint32_t rank = rank_.empty() ? root : rank_[root];
  if (size_[root] > best_.size || (size_[root] == best_.size && rank < best_.rank)) {
    best_ = {size_[root], rank, root};
  }
}

uint32_t Connectivity::find(uint32_t run) {
  while (parent_[run] != run) {
    parent_[run] = parent_[parent_[run]];
    run = parent_[run];
  }
  return run;
}

Connectivity::Chain Connectivity::find_chain(MattingProfile profile) const {
  int64_t outside = pixels_of_[0];
  Chain chain;
  for (int next = 1; next <= levels; ++next) {
    if (profile == MattingProfile::gca && outside >= winner_[next].size) {
      chain.background_next = true;
      return chain;
    }
    if (winner_[next].size == 0) {
      return chain;
    }
    if (next > 1 && !nested_[next]) {
      chain.broken = true;
      return chain;
    }
    chain.end = next;
    outside += pixels_of_[next];
  }
  return chain;
}

/// B of every run: the highest level at which it is connected to `seed`.
void Connectivity::measure_reach(uint32_t seed) {
  std::fill(reach_.begin(), reach_.end(), unknown_reach);
  // The components that `seed` was part of, each from the level at which it joined.
  uint32_t run = seed;
  reach_[run] = level_[run];
  while (joined_level_[run] > 0) {
    reach_[joined_to_[run]] = joined_level_[run];
    run = joined_to_[run];
  }
  for (run = 0; run < reach_.size(); ++run) {
    if (reach_[run] == unknown_reach) {
      const uint8_t level = joined_level_[run];
      reach_[run] = level > 0 ? std::min(level, reach_[joined_to_[run]]) : level;
    }
  }
}

/// From B to l: what is in to the end of the chain has l = K, or 10 where the convention lets it
/// stay.
void Connectivity::apply(const Chain& chain, MattingProfile profile) {
  const auto end = static_cast<uint8_t>(chain.end);
  const bool stays = chain.end == levels || (profile == MattingProfile::p3m && !chain.broken);
  for (uint32_t run = 0; run < reach_.size(); ++run) {
    if (reach_[run] < end) {
      continue;
    }
    const bool in_background = chain.background_next && level_[run] == end;
    reach_[run] = stays || in_background ? levels : end;
  }
}

void Connectivity::take_row(uint8_t* tenths) {
  ++taken_;  // the empty run before the row
  int64_t x = 0;
  while (x < width_) {
    const int64_t length = start_[taken_ + 1] - start_[taken_];
    std::memset(tenths + x, reach_[taken_], static_cast<size_t>(length));
    x += length;
    ++taken_;
  }
}

}  // namespace muster
