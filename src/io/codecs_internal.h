#pragma once

#include <muster/io/image.h>

#include <string_view>

namespace muster {

// The two decoders behind read_image_info and decode_image, for bytes with the right first bytes.
ImageInfo png_info(std::string_view bytes, std::string_view name);
Image decode_png(std::string_view bytes, std::string_view name, const DecodeLimits& limits);
ImageInfo jpeg_info(std::string_view bytes, std::string_view name);
Image decode_jpeg(std::string_view bytes, std::string_view name, const DecodeLimits& limits);

/// Error of kind `data` that begins with `name` when the header claims more than `limits` allow.
void check_limits(const ImageInfo& info, std::string_view name, const DecodeLimits& limits);
/// The same for the memory that decoding takes.
void check_memory(int64_t bytes, std::string_view name, const DecodeLimits& limits);

}  // namespace muster
