#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace matting {

struct UNetOptions {
  /// Channels at each scale, the full one first; multiples of 8, at least 3 scales.
  std::vector<int64_t> channels{16, 32, 48, 64, 96};
};

struct UNetOutput {
  at::Tensor alpha;     ///< NxHxW, float in [0, 1]; the trimap's where that is known
  at::Tensor guidance;  ///< NxHxW, float in [0, 1]: the coarse matte that the network refines
};

/// Convolution of 3x3, GroupNorm over 8 groups, ReLU.
class ConvBlock : public torch::nn::Module {
 public:
  ConvBlock(int64_t in, int64_t out, int64_t stride);
  at::Tensor forward(const at::Tensor& x);

 private:
  torch::nn::Conv2d conv_;
  torch::nn::GroupNorm norm_;
};

/// A U-Net (Ronneberger, Fischer and Brox, 2015) that gives the opacity of an image's foreground:
/// features are halved in size and taken up again by addition. A matte at a quarter of the size is
/// read off on the way up and refined at the full one.
class UNet : public torch::nn::Module {
 public:
  explicit UNet(const UNetOptions& options = {});

  /// `image`: Nx3xHxW, float in [0, 1]; `trimap`: NxHxW, uint8: 0 background, 128 unknown, 255
  /// foreground. Any H and W of at least 1. An image's output depends on that image alone.
  UNetOutput forward(const at::Tensor& image, const at::Tensor& trimap);

 private:
  using Blocks = std::vector<std::shared_ptr<ConvBlock>>;

  Blocks down_;                             ///< scale 0, then two for each further scale
  std::vector<torch::nn::Conv2d> lateral_;  ///< 1x1, from scale i + 1 to i
  Blocks up_;                               ///< one for each scale but the last
  torch::nn::Conv2d coarse_;
  torch::nn::Conv2d detail_;
};

/// What training makes small; a scalar with gradient. The mean over the samples of the mean
/// absolute error over a sample's unknown pixels, of alpha and (by `guidance_weight`) of guidance,
/// plus (by `gradient_weight`) that of alpha's differences between neighbours. `alpha`: NxHxW,
/// uint8, the truth; `trimap` as for the network.
at::Tensor matting_loss(const UNetOutput& output, const at::Tensor& alpha,
                        const at::Tensor& trimap);

}  // namespace matting
