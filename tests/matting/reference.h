#pragma once

#include <muster/matting/errors.h>
#include <muster/matting/picture.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace muster::test {

/// A picture that owns its values, without gaps between rows.
template <typename T>
struct Grid {
  int width = 0;
  int height = 0;
  std::vector<T> values{};

  [[nodiscard]] Picture<T> view() const { return {values.data(), width, height, width}; }
  [[nodiscard]] int size() const { return width * height; }
};

/// What happened in the chain of largest components, so that tests can ask whether they met it.
struct ChainEvents {
  int ties = 0;          ///< levels with two components of the largest size
  int empty_levels = 0;  ///< levels without pixels while some were still in
  int breaks = 0;        ///< levels whose largest component lies outside the one before

  void operator+=(const ChainEvents& other) {
    ties += other.ties;
    empty_levels += other.empty_levels;
    breaks += other.breaks;
  }
};

/// The errors as the definitions read, slowly: ten flood fills, direct two-dimensional filters in
/// long double, no code shared with the library.
template <typename T>
class SlowReference {
 public:
  SlowReference(const Grid<T>& prediction, const Grid<T>& truth, MattingProfile profile);

  /// The errors where `inside` is true.
  [[nodiscard]] RegionErrors errors(const std::vector<bool>& inside) const;
  [[nodiscard]] const ChainEvents& events() const { return events_; }

 private:
  using Pixels = std::vector<bool>;

  [[nodiscard]] bool reaches(int pixel, int level) const;
  [[nodiscard]] std::vector<Pixels> components(int level) const;
  [[nodiscard]] Pixels largest(int level);
  [[nodiscard]] std::vector<uint8_t> find_tenths();
  [[nodiscard]] std::vector<long double> gradient_errors() const;
  [[nodiscard]] bool comes_first(const Pixels& one, const Pixels& two) const;
  [[nodiscard]] std::vector<long double> magnitudes(const Grid<T>& picture) const;

  const Grid<T>& prediction_;
  const Grid<T>& truth_;
  MattingProfile profile_;
  ChainEvents events_;
  std::vector<uint8_t> tenths_;               // ten times the l map
  std::vector<long double> gradient_errors_;  // (|grad p| - |grad g|)^2 of each pixel
};

extern template class SlowReference<uint8_t>;
extern template class SlowReference<uint16_t>;
extern template class SlowReference<float>;
extern template class SlowReference<double>;

}  // namespace muster::test
