#include "unet.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/replication_pad2d.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/where.h>

#include <string>

namespace matting {

namespace {

constexpr int64_t groups = 8;
constexpr size_t coarse_scale = 2;  // a quarter of the image's size

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t size, int64_t stride, bool bias) {
  return torch::nn::Conv2d{
      torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(bias)};
}

/// The trimap as three planes, Nx3xHxW: background, unknown, foreground.
at::Tensor planes(const at::Tensor& trimap) {
  return at::stack({trimap == 0, trimap == 128, trimap == 255}, 1).to(at::kFloat);
}

/// The mean over each sample's pixels where `mask` (NxHxW, bool) is set, then over the samples.
at::Tensor mean_where(const at::Tensor& mask, const at::Tensor& values) {
  const auto count = mask.sum({1, 2}).clamp_min(1);
  return ((values * mask).sum({1, 2}) / count).mean();
}

}  // namespace

ConvBlock::ConvBlock(int64_t in, int64_t out, int64_t stride)
    : conv_{register_module("conv", convolution(in, out, 3, stride, false))},
      norm_{register_module("norm", torch::nn::GroupNorm{groups, out})} {}

at::Tensor ConvBlock::forward(const at::Tensor& x) { return norm_(conv_(x)).relu_(); }

UNet::UNet(const UNetOptions& options)
    : coarse_{convolution(options.channels.at(coarse_scale), 1, 1, 1, true)},
      detail_{convolution(options.channels.at(0), 1, 3, 1, true)} {
  const auto& channels = options.channels;
  const auto add = [this](Blocks& blocks, const std::string& name, int64_t in, int64_t out,
                          int64_t stride) {
    blocks.push_back(register_module(name, std::make_shared<ConvBlock>(in, out, stride)));
  };
  add(down_, "down0", 6, channels[0], 1);
  for (size_t i = 1; i < channels.size(); ++i) {
    add(down_, "down" + std::to_string(i) + "a", channels[i - 1], channels[i], 2);
    add(down_, "down" + std::to_string(i) + "b", channels[i], channels[i], 1);
  }
  for (size_t i = 0; i + 1 < channels.size(); ++i) {
    lateral_.emplace_back(register_module("lateral" + std::to_string(i),
                                          convolution(channels[i + 1], channels[i], 1, 1, false)));
    add(up_, "up" + std::to_string(i), channels[i], channels[i], 1);
  }
  register_module("coarse", coarse_);
  register_module("detail", detail_);
}

UNetOutput UNet::forward(const at::Tensor& image, const at::Tensor& trimap) {
  const int64_t height = image.size(2);
  const int64_t width = image.size(3);
  const int64_t stride = int64_t{1} << lateral_.size();
  const int64_t bottom = (stride - height % stride) % stride;
  const int64_t right = (stride - width % stride) % stride;
  auto x = at::cat({image * 2 - 1, planes(trimap)}, 1);
  if (bottom + right > 0) {
    x = at::replication_pad2d(x, {0, right, 0, bottom});
  }

  std::vector<at::Tensor> scales;
  scales.push_back(down_[0]->forward(x.contiguous(at::MemoryFormat::ChannelsLast)));
  for (size_t i = 1; i < down_.size(); i += 2) {
    scales.push_back(down_[i + 1]->forward(down_[i]->forward(scales.back())));
  }
  auto y = scales.back();
  at::Tensor coarse;
  for (size_t i = up_.size(); i-- > 0;) {
    const auto& skip = scales[i];
    y = up_[i]->forward(skip +
                        at::upsample_nearest2d(lateral_[i](y), {skip.size(2), skip.size(3)}));
    if (i == coarse_scale) {
      coarse = at::upsample_bilinear2d(coarse_(y), {x.size(2), x.size(3)}, false);
    }
  }
  const auto matte = [&](const at::Tensor& logits) {
    const auto inside = logits.squeeze(1).slice(1, 0, height).slice(2, 0, width);
    return at::where(trimap == 128, at::sigmoid(inside), trimap.to(at::kFloat) / 255);
  };
  return {matte(coarse + detail_(y)), matte(coarse)};
}

at::Tensor matting_loss(const UNetOutput& output, const at::Tensor& alpha,
                        const at::Tensor& trimap) {
  constexpr double guidance_weight = 0.3;
  constexpr double gradient_weight = 0.5;
  const auto truth = alpha.to(at::kFloat) / 255;
  const auto unknown = trimap == 128;
  const auto error = output.alpha - truth;
  const auto difference = [](const at::Tensor& values, int64_t dim) {
    return (values.slice(dim, 1) - values.slice(dim, 0, -1)).abs();
  };
  return mean_where(unknown, error.abs()) +
         guidance_weight * mean_where(unknown, (output.guidance - truth).abs()) +
         gradient_weight * (mean_where(unknown.slice(1, 1), difference(error, 1)) +
                            mean_where(unknown.slice(2, 1), difference(error, 2)));
}

}  // namespace matting
