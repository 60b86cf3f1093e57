#pragma once

#include <muster/matting/errors.h>

#include <array>
#include <cstdint>
#include <vector>

namespace muster {

/// The l map of the connectivity error, in tenths, from the level of each pixel: q = how many of
/// the thresholds 1/10 .. 10/10 both mattes reach. Give the rows from top to bottom, `solve`, take
/// the rows from top to bottom.
///
/// One sweep instead of ten labellings. Rows become runs of equal q. Levels are added from 10 down
/// to 1, and components only grow on the way (union-find over runs), so the largest component O_i
/// of level i is the largest seen so far. What is still in at level i is O_i as long as each O_i
/// lies in O_{i-1}, and nothing after the first that does not: the chain ends at a level K. With s
/// a pixel of O_K, l = min(K, B), B the highest level at which the pixel is connected to s; the
/// unions remember it.
class Connectivity {
 public:
  /// `width * height + 2 * width` must be below 2^32.
  void begin(int64_t width, int64_t height);
  /// The next row: `width` levels, 0..10.
  void add_row(const uint8_t* levels);
  void solve(MattingProfile profile);
  /// Writes the next row of the l map: `width` values, 0..10.
  void take_row(uint8_t* tenths);

 private:
  static constexpr int levels = 10;

  /// The largest component of a level; `size` 0 when the level has no pixels.
  struct Winner {
    uint32_t size = 0;
    uint32_t rank = 0;  // of equal sizes the smaller wins
    uint32_t run = 0;   // a run in it
  };
  /// Where the chain O_1, O_2, ... ends, and what holds there.
  struct Chain {
    int end = 0;                   // K
    bool broken = false;           // level K + 1 has a component, but it lies outside
    bool background_next = false;  // gca: the outside of level K + 1 wins
  };

  void append_run(uint8_t level);
  void link_rows();
  void sort_runs();
  void prepare_ranks(bool by_column);
  void join_levels();
  void join_neighbours(uint32_t run);
  void join(uint32_t run, uint32_t other, uint8_t level);
  void consider(uint32_t root);
  uint32_t find(uint32_t run);
  [[nodiscard]] Chain find_chain(MattingProfile profile) const;
  void measure_reach(uint32_t seed);
  void apply(const Chain& chain, MattingProfile profile);

  int64_t width_ = 0;
  int64_t height_ = 0;
  uint32_t position_ = 0;  // of the next pixel; the first row is at `width_`
  uint32_t taken_ = 0;     // the next run of take_row

  // Runs cover the picture in raster order. A row of level 0 stands above and below it, and an
  // empty run of level 0 before each row, so that no run has a neighbour across the border. Run r
  // is [start_[r], start_[r + 1]).
  std::vector<uint32_t> start_;
  std::vector<uint8_t> level_;
  std::vector<uint32_t> above_;   // first run of the row above that touches it
  std::vector<uint32_t> below_;   // first run of the row below that touches it
  std::vector<uint32_t> sorted_;  // runs of level 10, then 9, ..., 1, each in raster order
  std::array<uint32_t, levels + 2>
      first_of_level_{};  // into sorted_; level i ends where i - 1 begins

  // Union-find. A root has the smallest run of its component, so a parent comes before its
  // children.
  std::vector<uint32_t> parent_;       // shortened by find
  std::vector<uint32_t> size_;         // pixels, at a root
  std::vector<uint32_t> rank_;         // at a root; only where components rank by column
  std::vector<uint32_t> joined_to_;    // the parent at the union
  std::vector<uint8_t> joined_level_;  // the level of the union; 0: none
  std::vector<uint8_t> reach_;         // B of each run, then its l

  Winner best_;
  std::array<Winner, levels + 1> winner_{};      // by level
  std::array<bool, levels + 1> nested_{};        // O_i lies in O_{i-1}
  std::array<int64_t, levels + 1> pixels_of_{};  // pixels of exactly that level
};

}  // namespace muster
