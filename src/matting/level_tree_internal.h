#pragma once

#include "src/matting/kernels_internal.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace muster {

/// Memory without contents that grows and is kept. Pages that nobody touches cost nothing.
template <typename T>
class Scratch {
 public:
  void need(int64_t count) {
    if (count > size_) {
      data_.reset();
      data_ = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(count));
      size_ = count;
    }
  }
  T* data() { return data_.get(); }
  [[nodiscard]] const T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T[]> data_;
  int64_t size_ = 0;
};

/// The connected components (4 neighbours) of the sets {level >= i}, i = 1..10, of a picture of
/// levels, as a tree: a node is a component together with its highest i, its parent the component
/// of a lower i that holds it. Union-find over the runs of equal level, row by row:
///
/// - A row alone gives a tree of its own, whose nodes are intervals.
/// - It is joined to the row above where two pixels, one above the other, are both at least as high
///   as the pairs to their left and right: all other pairs are connected through such a one at
///   their own level or above. Joining two nodes merges the paths from both to the root, by level.
/// - Nodes of equal level that are joined stay, and point to the one that came first.
class LevelTree {
 public:
  static constexpr int levels = 10;
  static constexpr uint32_t root = 0;        ///< of level 0; no component
  static constexpr uint32_t first_node = 2;  ///< node 1 stands above the root

  struct Nodes {
    Scratch<uint32_t> parent;
    Scratch<uint32_t> size;  ///< in pixels
    Scratch<uint32_t> rank;  ///< of components of equal size the lower comes first
    Scratch<uint8_t> level;
    uint32_t count = first_node;
  };

  /// `width * height` is at most 2^30. Components rank by their first pixel, row by row or column
  /// by column.
  void begin(int64_t width, int64_t height, bool by_column, const Kernels& kernels);
  /// Where the next row's levels go: `width` of them, then 0 to the end of a block of 32.
  uint8_t* row_to_fill() { return level_row(row_); }
  void add_row();
  /// After the last row. From here on sizes count the pixels of exactly the node's level in its
  /// component, at least 1; a node of size 0 is an alias of its parent, which is none.
  void finish();

  Nodes& nodes() { return nodes_; }
  [[nodiscard]] int64_t width() const { return width_; }
  /// Words of a row's bits; bit x of row y: a run of equal levels begins.
  [[nodiscard]] int64_t words() const { return words_; }
  [[nodiscard]] const uint64_t* run_starts(int64_t y) const { return starts_.data() + y * words_; }
  /// The node of each run, in the order of the picture.
  [[nodiscard]] const uint32_t* node_of_run() const { return node_of_run_.data(); }

 private:
  static constexpr int64_t margin = 64;

  uint8_t* level_row(int64_t y) { return level_rows_[y & 1].data() + margin; }
  void grow_row_tree(const uint64_t* starts);
  void join_rows();

  int64_t width_ = 0;
  int64_t words_ = 0;
  int64_t row_ = 0;
  // A node of row y that begins at x has rank y * rank_of_row_ + x * rank_of_column_.
  uint32_t rank_of_row_ = 0;
  uint32_t rank_of_column_ = 0;
  const Kernels* kernels_ = nullptr;

  Nodes nodes_;
  Scratch<uint64_t> starts_;
  Scratch<uint32_t> node_of_run_;
  int64_t runs_ = 0;
  // Of the last two rows, with zeros around them.
  std::array<std::vector<uint8_t>, 2> level_rows_;
  std::array<std::vector<uint32_t>, 2> node_rows_;  // the node of each pixel
  std::vector<uint64_t> peaks_;
};

}  // namespace muster
