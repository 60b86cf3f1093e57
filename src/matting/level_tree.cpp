#include "src/matting/level_tree_internal.h"

#include "src/matting/simd_internal.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace muster {

namespace {

/// The nodes' arrays, for inner loops.
struct Links {
  uint32_t* parent;
  const uint8_t* level;

  /// The node that an alias stands for. Shortens the way.
  [[nodiscard]] uint32_t find(uint32_t node) const {
    const uint8_t own = level[node];
    while (true) {
      const uint32_t next = parent[node];
      if (level[next] != own) {
        return node;
      }
      const uint32_t after = parent[next];
      if (level[after] != own) {
        return next;
      }
      parent[node] = after;
      node = after;
    }
  }

  /// Makes one component of those of two nodes that touch, at every level that both reach.
  void join(uint32_t one, uint32_t two) const {
    uint32_t high = find(one);
    uint32_t low = find(two);
    while (high != low) {
      if (level[high] < level[low] || (level[high] == level[low] && high < low)) {
        std::swap(high, low);
      }
      const uint32_t next = find(parent[high]);
      if (level[next] >= level[low]) {
        parent[high] = next;
        high = next;
      } else {
        parent[high] = low;
        high = low;
        low = next;
      }
    }
  }
};

}  // namespace

void LevelTree::begin(int64_t width, int64_t height, bool by_column, const Kernels& kernels) {
  width_ = width;
  words_ = width / 64 + 1;
  row_ = 0;
  rank_of_row_ = by_column ? 1 : static_cast<uint32_t>(width);
  rank_of_column_ = by_column ? static_cast<uint32_t>(height) : 1;
  kernels_ = &kernels;

  const int64_t most_nodes = width * height + first_node + 1;
  nodes_.parent.need(most_nodes);
  nodes_.size.need(most_nodes);
  nodes_.rank.need(most_nodes);
  nodes_.level.need(most_nodes);
  nodes_.count = first_node;
  nodes_.parent.data()[root] = root + 1;
  nodes_.parent.data()[root + 1] = root + 1;
  nodes_.level.data()[root] = 0;
  nodes_.level.data()[root + 1] = levels + 1;
  nodes_.size.data()[root] = 1;  // so that it looks like no alias
  nodes_.rank.data()[root] = 0;

  starts_.need(height * words_);
  node_of_run_.need(width * height);
  runs_ = 0;
  for (int i = 0; i < 2; ++i) {
    level_rows_[i].assign(static_cast<size_t>(64 * words_ + 2 * margin), 0);
    node_rows_[i].resize(static_cast<size_t>(width + margin));
  }
  peaks_.resize(static_cast<size_t>(words_));
}

void LevelTree::add_row() {
  uint64_t* starts = starts_.data() + row_ * words_;
  kernels_->changes(level_row(row_), words_, starts);
  starts[0] |= 1;
  starts[words_ - 1] &= (uint64_t{1} << static_cast<unsigned>(width_ % 64)) - 1;
  grow_row_tree(starts);
  join_rows();
  ++row_;
}

/// The tree of the row alone. `open`: by level, the node of the interval that goes on.
void LevelTree::grow_row_tree(const uint64_t* starts) {
  uint32_t* parent = nodes_.parent.data();
  uint32_t* size = nodes_.size.data();
  uint32_t* rank = nodes_.rank.data();
  uint8_t* level = nodes_.level.data();
  uint32_t* node_of_run = node_of_run_.data() + runs_;
  uint32_t* node_row = node_rows_[row_ & 1].data();
  const uint8_t* row = level_row(row_);
  uint32_t open[levels + 1] = {root};
  uint32_t is_open = 1;
  uint32_t fresh = nodes_.count;
  uint32_t node = root;
  int64_t begin = 0;

  const auto end_run = [&](int64_t end) __attribute__((always_inline)) {
    size[node] += static_cast<uint32_t>(end - begin);
    for (int64_t x = begin; x < end; x += 4) {
      store(node_row + x, Vector<uint32_t, 4>{node, node, node, node});
    }
    begin = end;
  };
  // Without branches, which would be guessed wrong half of the time. A fresh node is written where
  // the next one goes, and counts only if the run needs one: it does unless its level is open.
  const auto begin_run = [&](uint32_t now) __attribute__((always_inline)) {
    parent[fresh] = node;
    rank[fresh] =
        static_cast<uint32_t>(row_) * rank_of_row_ + static_cast<uint32_t>(begin) * rank_of_column_;
    level[fresh] = static_cast<uint8_t>(now);
    size[fresh] = 0;
    const bool needed = (is_open >> now & 1U) == 0;
    // After a fall the lowest interval that ends here is where the fresh one began, and becomes its
    // child.
    const uint32_t ending = is_open & ~((2U << now) - 1U);
    const uint32_t child = ending != 0 ? open[std::countr_zero(ending)] : fresh;
    const uint32_t above = parent[child];
    parent[child] = needed ? fresh : above;
    parent[fresh] = above;
    rank[fresh] = rank[child];
    node = needed ? fresh : open[now];
    open[now] = node;
    is_open = (is_open | 1U << now) & ((2U << now) - 1U);
    fresh += needed ? 1 : 0;
    *node_of_run++ = node;
  };

  begin_run(row[0]);
  for (int64_t word = 0; word < words_; ++word) {
    uint64_t bits = word == 0 ? starts[0] & ~uint64_t{1} : starts[word];
    for (; bits != 0; bits &= bits - 1) {
      const int64_t x = 64 * word + std::countr_zero(bits);
      end_run(x);
      begin_run(row[x]);
    }
  }
  end_run(width_);
  nodes_.count = fresh;
  runs_ = node_of_run - node_of_run_.data();
}

void LevelTree::join_rows() {
  if (row_ == 0) {
    return;
  }
  kernels_->peak_ends(level_row(row_ - 1), level_row(row_), words_, peaks_.data());
  const uint32_t* above = node_rows_[(row_ - 1) & 1].data();
  const uint32_t* here = node_rows_[row_ & 1].data();
  const Links links{nodes_.parent.data(), nodes_.level.data()};
  for (int64_t word = 0; word < words_; ++word) {
    for (uint64_t bits = peaks_[static_cast<size_t>(word)]; bits != 0; bits &= bits - 1) {
      const int64_t x = 64 * word + std::countr_zero(bits) - 1;
      links.join(above[x], here[x]);
    }
  }
}

void LevelTree::finish() {
  uint32_t* parent = nodes_.parent.data();
  uint32_t* size = nodes_.size.data();
  uint32_t* rank = nodes_.rank.data();
  const uint8_t* level = nodes_.level.data();
  // What an alias points to came before it, and so is no alias or points to what is none. Again
  // without branches.
  for (uint32_t node = first_node; node < nodes_.count; ++node) {
    const uint32_t next = parent[node];
    const uint32_t is_alias = level[next] == level[node] ? ~0U : 0U;
    const uint32_t after = size[next] == 0 ? ~0U : 0U;
    const uint32_t meant = (parent[next] & after) | (next & ~after);
    const uint32_t target = (meant & is_alias) | (node & ~is_alias);
    parent[node] = (meant & is_alias) | (next & ~is_alias);
    size[target] += size[node] & is_alias;
    size[node] &= ~is_alias;
    rank[target] = std::min(rank[target], rank[node]);
  }
}

}  // namespace muster
