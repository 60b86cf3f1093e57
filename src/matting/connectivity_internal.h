#pragma once

#include <muster/matting/errors.h>

#include "src/matting/kernels_internal.h"
#include "src/matting/level_tree_internal.h"

#include <array>
#include <cstdint>

namespace muster {

/// The l map of the connectivity error, in tenths, from the level of each pixel: q = how many of
/// the thresholds 1/10 .. 10/10 both mattes reach. Give the rows from top to bottom, `solve`, take
/// the rows from top to bottom.
///
/// One union-find instead of ten labellings (`LevelTree`). The largest component O_i of level i is
/// the largest of all that reach level i or more, since components only grow on the way down. What
/// is still in at level i is O_i as long as each O_i lies in O_{i-1}, and nothing after the first
/// that does not: the chain ends at a level K. With s a pixel of O_K, l = min(K, B), B the highest
/// level at which the pixel is connected to s.
class Connectivity {
 public:
  /// `width * height` is at most 2^30.
  void begin(int64_t width, int64_t height, MattingProfile profile, const Kernels& kernels);
  /// Where the next row's levels go: `width` of 0..10, then 0 to the end of a block of 32.
  uint8_t* row_to_fill() { return tree_.row_to_fill(); }
  void add_row() { tree_.add_row(); }
  void solve();
  /// The next row of the l map: `width` values, 0..10, then others to the end of a block of 32.
  /// Valid until the next call.
  const uint8_t* take_row();

 private:
  static constexpr int levels = LevelTree::levels;

  /// The largest component of a level; `size` 0 when the level has no pixels.
  struct Winner {
    uint32_t size = 0;
    uint32_t rank = 0;
    uint32_t node = 0;
  };
  /// Where the chain O_1, O_2, ... ends, and what holds there.
  struct Chain {
    int end = 0;                   // K
    bool broken = false;           // level K + 1 has a component, but it lies outside
    bool background_next = false;  // gca: the outside of level K + 1 wins
  };

  void sort_components();
  void find_winners();
  [[nodiscard]] bool is_nested(int level);
  [[nodiscard]] Chain find_chain();
  void set_reach(const Chain& chain);
  void set_tenths(const Chain& chain);

  MattingProfile profile_ = MattingProfile::dim;
  LevelTree tree_;
  Scratch<uint32_t> sorted_;  // nodes of level 10 that are no aliases, then of 9, ..., 1
  std::array<uint32_t, levels + 2>
      first_of_level_{};                         // into sorted_; level i ends where i - 1 begins
  std::array<Winner, levels + 1> winner_{};      // by level
  std::array<int64_t, levels + 1> pixels_of_{};  // pixels of exactly that level
  Scratch<uint8_t> tenths_;                      // B of each node, then its l
  int64_t row_taken_ = 0;
  int64_t run_taken_ = 0;
  std::vector<uint8_t> row_;
};

}  // namespace muster
