#pragma once

#include <muster/matting/picture.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace muster {

/// Which convention the errors follow. All have the same thresholds, take regions as plain masks
/// (components and gradients are those of the whole picture), and differ only as said here.
enum class MattingProfile {
  /// Gradient by a 9x9 Gaussian derivative (sigma 1.4, unit L2 norm) with borders replicated.
  /// Connectivity by the largest 4-connected component; of equals the one whose first pixel comes
  /// first row by row; a level without pixels ends every pixel that is still in. (Xu et al., Deep
  /// Image Matting, 2017.)
  dim,
  /// As dim, but the pixels outside a level's set compete as one component and win ties, as in the
  /// Python that most papers' code copies (GCA-Matting).
  gca,
  /// As dim, but each picture is stretched to its own minimum and maximum before the gradient (a
  /// flat one has gradient 0), and of equal components the one whose first pixel comes first column
  /// by column.
  matlab,
  /// As dim, but a level without pixels is skipped, and the gradient is by a Gaussian derivative of
  /// sigma 1.4, radius 6 and weights that sum to 1, with borders reflected (c b a | a b c), its sum
  /// divided by 10.
  p3m,
};

/// The profiles by name, for options and arguments.
constexpr auto enum_names(MattingProfile) {
  return std::array{std::pair{"dim", MattingProfile::dim}, std::pair{"gca", MattingProfile::gca},
                    std::pair{"matlab", MattingProfile::matlab},
                    std::pair{"p3m", MattingProfile::p3m}};
}

struct MattingOptions {
  MattingProfile profile = MattingProfile::dim;  ///< which convention
};

/// The four errors of one region, over its pixels: |p - g| summed, (p - g)^2 averaged, (|grad p| -
/// |grad g|)^2 summed, and the difference of connectivity summed. The sums are divided by 1000
/// (grad of p3m by 10).
struct ErrorValues {
  double sad = 0.0;
  double mse = 0.0;
  double grad = 0.0;
  double conn = 0.0;
};

/// Sums over a region of pictures of integers, M the full scale: |p - g| in units of 1/M,
/// (p - g)^2 in units of 1/M^2, the difference of connectivity in units of 1/(10 M). No rounding is
/// in them.
struct ErrorSums {
  int64_t sad = 0;
  int64_t sse = 0;
  int64_t conn = 0;

  friend bool operator==(const ErrorSums&, const ErrorSums&) = default;
};

struct RegionErrors {
  int64_t n = 0;  ///< pixels of the region
  std::optional<ErrorValues>
      values{};                     ///< nothing when n is 0: a region without pixels has no error
  std::optional<ErrorSums> sums{};  ///< for pictures of integers only
};

struct MattingErrors {
  std::optional<RegionErrors> unknown{};  ///< where the trimap is 85..169; nothing without a trimap
  RegionErrors all{};                     ///< every pixel
};

/// Working memory of `matting_errors`, kept from one picture to the next: at most 24 bytes a pixel
/// of the largest so far (30 where it is a few pixels wide) and 200 kB. One thread at a time.
class MattingWorkspace {
 public:
  struct Buffers;

  MattingWorkspace();
  ~MattingWorkspace();
  MattingWorkspace(MattingWorkspace&&) noexcept;
  MattingWorkspace& operator=(MattingWorkspace&&) noexcept;

  Buffers& buffers() { return *buffers_; }

 private:
  std::unique_ptr<Buffers> buffers_;
};

/// SAD, MSE, gradient and connectivity error of an alpha matte against the truth, for the unknown
/// region and the whole picture. The result depends on the values alone, not on the processor: the
/// order of every sum is fixed, and SAD, MSE and connectivity of integers come from integer sums.
///
/// Connectivity (Rhemann et al. 2009, as Xu et al. 2017 compute it): level i = 1..10 is reached
/// where both mattes are at least i/10 (in integers 10 v >= i M); a pixel leaves at the first level
/// whose largest component lacks it, and l is the level before, in tenths; with d = v - l, the
/// error is |d_p [d_p >= 0.15] - d_g [d_g >= 0.15]|. For float and double, i/10 is the nearest
/// double and sums are in double.
///
/// The pictures have the same width and height; strides may differ. The trimap counts as unknown
/// where it is 85..169; without one there is no unknown region.
///
/// Error of kind `data` for pictures whose sizes differ, for no pixels, for more than 2^30 pixels,
/// and for a float or double that is not finite or outside [0, 1]. Any thread, each with a
/// workspace of its own. After an error the workspace may be used again.
MattingErrors matting_errors(const Picture8& prediction, const Picture8& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace);
MattingErrors matting_errors(const Picture16& prediction, const Picture16& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace);
MattingErrors matting_errors(const PictureF& prediction, const PictureF& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace);
MattingErrors matting_errors(const PictureD& prediction, const PictureD& truth,
                             const std::optional<Picture8>& trimap, const MattingOptions& options,
                             MattingWorkspace& workspace);

}  // namespace muster
