#include <ATen/ops/empty.h>
#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/io/tensor_image.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace muster {
namespace {

// ---- from pictures to tensors

/// Copies pixels whose channels stand together into planes, each value by `convert`.
template <typename To, typename From, typename Convert>
void to_planes(const Image& image, at::Tensor& tensor, Convert convert) {
  const auto* from = reinterpret_cast<const From*>(image.pixels.get());
  auto* to = tensor.mutable_data_ptr<To>();
  const int64_t pixels = image.width * image.height;
  const int64_t channels = image.channels;
  for (int64_t k = 0; k < channels; ++k) {
    for (int64_t i = 0; i < pixels; ++i) {
      to[k * pixels + i] = convert(from[i * channels + k]);
    }
  }
}

// ---- from tensors to pictures

bool is_channel_count(int64_t size) { return size == 1 || size == 3 || size == 4; }

[[noreturn]] void refuse(const at::Tensor& image, std::string_view why) {
  std::ostringstream shape;
  shape << image.sizes() << " of " << image.scalar_type();
  fail(ErrorKind::usage,
       "A tensor {} is no image: {}. An image is H x W, C x H x W or H x W x C with C = 1, 3 or 4, "
       "of uint8 (0..255), bool, or floating in [0, 1]",
       shape.str(), why);
}

/// The image as H x W x C, without copying.
at::Tensor with_channels_last(const at::Tensor& image) {
  if (image.dim() == 2) {
    return image.unsqueeze(2);
  }
  if (image.dim() == 4 && image.size(0) == 1) {
    refuse(image, "take the one image out of its batch, as image[0]");
  }
  if (image.dim() != 3) {
    refuse(image, "it has neither two dimensions nor three");
  }
  if (is_channel_count(image.size(0))) {
    return image.permute({1, 2, 0});
  }
  if (!is_channel_count(image.size(2))) {
    refuse(image, "neither its first size nor its last is a number of channels");
  }
  return image;
}

template <typename Number>
void quantise(const at::Tensor& values, uint8_t* to, int64_t& out_of_range) {
  const auto* from = values.const_data_ptr<Number>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const Number value = from[i];
    if (value >= 0 && value <= 1) {
      to[i] = static_cast<uint8_t>(value * 255 + Number{0.5});
    } else {
      to[i] = value > 1 ? 255 : 0;  // NaN fails every comparison
      ++out_of_range;
    }
  }
}

Image to_image(const at::Tensor& values, int64_t& out_of_range) {
  Image image =
      Image::uninitialised(values.size(1), values.size(0), static_cast<int>(values.size(2)), 8);
  uint8_t* to = image.pixels.get();
  switch (values.scalar_type()) {
    case at::kByte:
      std::memcpy(to, values.const_data_ptr<uint8_t>(), static_cast<size_t>(image.bytes()));
      break;
    case at::kBool: {
      const bool* from = values.const_data_ptr<bool>();
      std::transform(from, from + image.bytes(), to, [](bool on) { return on ? 255 : 0; });
      break;
    }
    case at::kDouble:
      quantise<double>(values, to, out_of_range);
      break;
    default:
      quantise<float>(values, to, out_of_range);
  }
  return image;
}

}  // namespace

at::Tensor image_to_tensor(const Image& image, PixelType type) {
  const bool wide = image.depth == 16;
  at::Tensor tensor = at::empty({image.channels, image.height, image.width},
                                type == PixelType::uint8 ? at::kByte : at::kFloat);
  if (type == PixelType::float32) {
    // A division, not a product with 1/255: it is the nearest float to v / full scale.
    if (wide) {
      to_planes<float, uint16_t>(image, tensor,
                                 [](uint16_t v) { return static_cast<float>(v) / 65535.0F; });
    } else {
      to_planes<float, uint8_t>(image, tensor,
                                [](uint8_t v) { return static_cast<float>(v) / 255.0F; });
    }
  } else if (wide) {
    to_planes<uint8_t, uint16_t>(
        image, tensor, [](uint16_t v) { return static_cast<uint8_t>((v + 128U) / 257U); });
  } else {
    to_planes<uint8_t, uint8_t>(image, tensor, [](uint8_t v) { return v; });
  }
  return tensor;
}

at::Tensor read_image(const std::filesystem::path& path, const ReadOptions& options) {
  const auto bytes = read_file(path);
  return image_to_tensor(
      convert_image(decode_image(bytes, path.string(), options.limits), options.mode),
      options.type);
}

void check_is_image(const at::Tensor& image) {
  check(image.defined(), "An undefined tensor is no image");
  if (image.layout() != at::kStrided || image.is_quantized() || image.is_meta()) {
    refuse(image, "its values do not lie in memory one by one");
  }
  const auto type = image.scalar_type();
  if (type != at::kByte && type != at::kBool && !at::isFloatingType(type)) {
    refuse(image, "its type has no range that is known");
  }
  if (with_channels_last(image).numel() == 0) {
    refuse(image, "it has no pixels");
  }
}

std::string encode_png(const at::Tensor& image, const PngOptions& options, PngInfo* info) {
  check_is_image(image);
  const auto type = image.scalar_type();
  at::Tensor values = with_channels_last(image.detach()).to(at::kCPU);
  if (at::isFloatingType(type) && type != at::kDouble) {
    values = values.to(at::kFloat);
  }
  int64_t out_of_range = 0;
  const Image pixels = to_image(values.contiguous(), out_of_range);
  if (info != nullptr) {
    *info = {pixels.width, pixels.height, out_of_range};
  }
  return encode_png(pixels.view(), options);
}

}  // namespace muster
