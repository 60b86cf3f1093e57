#pragma once

// png.h needs size_t before it.
#include <cstddef>

#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::fuzz {

/// A PNG's rows as libpng reads and expands them, 16-bit values in the machine's byte order.
/// Nothing where it fails or has anything to complain of.
class LibpngReader {
 public:
  explicit LibpngReader(std::string_view file) : file_{file} {}

  std::optional<std::vector<uint8_t>> pixels() {
    png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave, complain);
    png_infop info = png_create_info_struct(reader);
    const bool ok = read(reader, info);
    png_destroy_read_struct(&reader, &info, nullptr);
    return ok && !complained_ ? std::optional{pixels_} : std::nullopt;
  }

 private:
  [[noreturn]] static void leave(png_structp reader, png_const_charp /*message*/) {
    png_longjmp(reader, 1);
  }
  static void complain(png_structp reader, png_const_charp /*message*/) {
    static_cast<LibpngReader*>(png_get_error_ptr(reader))->complained_ = true;
  }
  static void take(png_structp reader, png_bytep to, size_t count) {
    auto& file = static_cast<LibpngReader*>(png_get_io_ptr(reader))->file_;
    if (count > file.size()) {
      png_error(reader, "the end");
    }
    std::memcpy(to, file.data(), count);
    file.remove_prefix(count);
  }

  /// Holds nothing that a longjmp would pass over.
  bool read(png_structp reader, png_infop info) {
    if (setjmp(png_jmpbuf(reader)) != 0) {
      return false;
    }
    png_set_read_fn(reader, this, take);
    png_set_user_limits(reader, 4096, 4096);
    png_read_info(reader, info);
    png_set_expand(reader);
    png_set_swap(reader);
    png_set_interlace_handling(reader);
    png_read_update_info(reader, info);
    const size_t row_bytes = png_get_rowbytes(reader, info);
    const size_t height = png_get_image_height(reader, info);
    pixels_.resize(row_bytes * height);
    rows_.resize(height);
    for (size_t y = 0; y < height; ++y) {
      rows_[y] = pixels_.data() + y * row_bytes;
    }
    png_read_image(reader, rows_.data());
    png_read_end(reader, nullptr);
    return true;
  }

  std::string_view file_;
  std::vector<uint8_t> pixels_;
  std::vector<png_bytep> rows_;
  bool complained_ = false;
};

}  // namespace muster::fuzz
