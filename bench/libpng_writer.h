#pragma once

// png.h needs size_t before it.
#include <cstddef>

#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster::bench {

/// A gray PNG of 8 bits as most programs write it: by libpng, each row with the filter that libpng
/// chooses, deflated at level 6.
inline std::string write_by_libpng(const std::vector<uint8_t>& values, int64_t width) {
  std::string file;
  png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(writer);
  png_set_write_fn(
      writer, &file,
      [](png_structp self, png_bytep bytes, size_t count) {
        static_cast<std::string*>(png_get_io_ptr(self))
            ->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  const auto height = static_cast<int64_t>(values.size()) / width;
  png_set_IHDR(writer, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8,
               PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_filter(writer, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
  png_set_compression_level(writer, 6);
  png_write_info(writer, info);
  for (int64_t y = 0; y < height; ++y) {
    png_write_row(writer, values.data() + y * width);
  }
  png_write_end(writer, info);
  png_destroy_write_struct(&writer, &info);
  return file;
}

}  // namespace muster::bench
