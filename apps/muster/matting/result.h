#pragma once

#include <muster/matting/errors.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::app {

/// Something about the files that the user must know.
struct Problem {
  enum class Kind { error, warning };

  std::string place{};      ///< orders problems: the picture's relative path without extension
  Kind kind = Kind::error;  ///< errors give exit code 65
  std::string text{};       ///< names the paths
};

/// One region of one image.
struct RegionRow {
  int64_t n = 0;                        ///< pixels
  std::optional<ErrorValues> values{};  ///< nothing when n is 0
};

/// What was found for one image.
struct ImageRow {
  int64_t index = 0;  ///< place of its sample in path order
  int64_t width = 0;
  int64_t height = 0;
  std::optional<RegionRow> unknown{};  ///< nothing without a trimap
  RegionRow all{};
};

/// Thumbnails of an image as PNG files.
struct Thumbnails {
  std::string prediction{};
  std::string truth{};
  std::string error{};
};

/// An image together with what it is called.
struct NamedRow {
  std::string dataset{};  ///< the top sub-folder; "" at the root
  std::string name{};     ///< the rest of the relative path, without extension
  ImageRow row{};
};

/// Means over the images that have pixels in a region.
struct RegionMean {
  int64_t images = 0;                   ///< how many have
  std::optional<ErrorValues> values{};  ///< nothing when none has
};

struct Means {
  std::optional<RegionMean> unknown{};  ///< nothing when no trimaps were given at all
  RegionMean all{};
};

/// All that the outputs show.
struct MattingReport {
  std::string profile{};
  bool has_trimaps = false;  ///< whether --trimap was given
  std::string prediction{};  ///< PRED and GT as they were given
  std::string truth{};
  std::vector<NamedRow> rows{};                ///< in path order
  Means mean{};                                ///< over all images
  std::map<std::string, Means> datasets{};     ///< by data set
  std::vector<Problem> problems{};             ///< by place
  std::map<int64_t, Thumbnails> thumbnails{};  ///< of the worst images, by index

  /// Positions in `rows`, the worst image first.
  [[nodiscard]] std::vector<size_t> worst_first() const;
};

/// The four errors in the order in which they are shown.
struct ErrorColumn {
  std::string_view name;
  double ErrorValues::*member;
};
inline constexpr std::array error_columns{
    ErrorColumn{"sad", &ErrorValues::sad}, ErrorColumn{"mse", &ErrorValues::mse},
    ErrorColumn{"grad", &ErrorValues::grad}, ErrorColumn{"conn", &ErrorValues::conn}};

/// How bad an image is: its SAD of the unknown region where there are trimaps, else of the whole
/// image; below all others where there is none.
double badness(const ImageRow& row, bool has_trimaps);

/// Fills `mean` and `datasets` from `rows`. The order of rows changes no bit.
void compute_means(MattingReport& report);

}  // namespace muster::app
