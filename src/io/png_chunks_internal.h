#pragma once

#include <muster/io/image.h>

#include <string_view>
#include <vector>

namespace muster {

/// What the chunks of a PNG say; the parts point into the file.
struct PngChunks {
  int64_t width = 0;
  int64_t height = 0;
  int depth = 0;                         ///< bits a sample: 1, 2, 4, 8 or 16
  int colour = 0;                        ///< 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA
  bool interlaced = false;               ///< by Adam7
  std::string_view palette{};            ///< PLTE, only with colour 3
  std::string_view transparency{};       ///< tRNS, only with colours 0, 2 and 3
  std::vector<std::string_view> data{};  ///< IDAT, in order

  [[nodiscard]] int samples_a_pixel() const;
  /// What a decoder gives for it.
  [[nodiscard]] ImageInfo info() const;
};

/// Reads the chunks up to the first IDAT (`header_only`) or to the end, and checks the checksums of
/// those that matter. Error of kind `data` that begins with `name`.
PngChunks read_png_chunks(std::string_view bytes, std::string_view name, bool header_only);

}  // namespace muster
