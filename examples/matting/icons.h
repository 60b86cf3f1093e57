#pragma once

#include <muster/data/dataset.h>

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace matting {

/// One picture to matte.
struct Photo {
  at::Tensor image;          ///< 3xHxW, float in [0, 1]
  at::Tensor alpha;          ///< HxW, uint8: the truth
  at::Tensor trimap;         ///< HxW, uint8: 0 background, 128 unknown, 255 foreground
  std::string dataset_name;  ///< the photograph it stands before
  std::string image_name;    ///< the icon
};

/// The parts that an icon's name puts it in.
enum class Split { train, val, test };

struct IconOptions {
  std::filesystem::path icons{};  ///< folder with PNG icons that have an alpha channel
  std::filesystem::path
      photographs{};  ///< folder with astronaut.png, chelsea.png, coffee.png and rocket.jpg
  int64_t band = 10;  ///< half width of the trimap's unknown band, pixels
};

/// The icons of one split by name, about 50, 12 and 12 of 74: the name decides. Error of kind
/// `data` when the folder lacks icons.
std::vector<std::filesystem::path> icon_paths(const IconOptions& options, Split split);

/// The four photographs. Error of kind `data` when the folder lacks one.
std::vector<std::filesystem::path> photograph_paths(const IconOptions& options);

/// Icons of one split, each before one of four photographs, cropped so that sizes differ: the same
/// pictures whatever the seed and epoch. Error of kind `data` when a folder lacks its pictures.
std::shared_ptr<const muster::Dataset<Photo>> icons_on_photographs(const IconOptions& options,
                                                                   Split split);

/// 255 where alpha is 255 all around, 0 where it is 0 all around, 128 between: erosion by a square
/// of 2 * band + 1.
at::Tensor trimap_of(const at::Tensor& alpha, int64_t band);

}  // namespace matting
