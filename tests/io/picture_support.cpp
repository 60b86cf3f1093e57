#include "tests/io/picture_support.h"

#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/base/random.h>
#include <png.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

namespace muster::test {
namespace {

void append_to_text(png_structp writer, png_bytep bytes, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(writer))->append(reinterpret_cast<char*>(bytes), count);
}

std::vector<uint8_t> packed_row(const RawPng& raw, int64_t y) {
  const int64_t count = raw.width * raw.samples_a_pixel();
  std::vector<uint8_t> row(static_cast<size_t>((count * raw.depth + 7) / 8));
  for (int64_t i = 0; i < count; ++i) {
    const auto value = raw.samples[static_cast<size_t>(y * count + i)];
    for (int bit = 0; bit < raw.depth; ++bit) {
      const auto at = static_cast<size_t>(i * raw.depth + bit);
      if ((value >> (raw.depth - 1 - bit) & 1) != 0) {
        row[at / 8] = static_cast<uint8_t>(row[at / 8] | 0x80U >> at % 8);
      }
    }
  }
  return row;
}

void set_transparency(png_structp writer, png_infop info, const RawPng& raw) {
  if (raw.transparent.empty()) {
    return;
  }
  if (raw.colour == 3) {
    std::vector<uint8_t> alphas(raw.transparent.begin(), raw.transparent.end());
    png_set_tRNS(writer, info, alphas.data(), static_cast<int>(alphas.size()), nullptr);
    return;
  }
  png_color_16 key{};
  key.gray = raw.transparent[0];
  if (raw.colour == 2) {
    key.red = raw.transparent[0];
    key.green = raw.transparent[1];
    key.blue = raw.transparent[2];
  }
  png_set_tRNS(writer, info, nullptr, 1, &key);
}

}  // namespace

int RawPng::samples_a_pixel() const {
  return colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
}

RawPng random_png(int64_t width, int64_t height, int depth, int colour, uint64_t seed) {
  RawPng raw{.width = width, .height = height, .depth = depth, .colour = colour};
  Rng rng{seed};
  int64_t levels = int64_t{1} << depth;
  if (colour == 3) {
    levels = std::min<int64_t>(levels, 200);
    for (int64_t i = 0; i < 3 * levels; ++i) {
      raw.palette.push_back(static_cast<uint8_t>(rng.below(256)));
    }
  }
  for (int64_t i = 0; i < width * height * raw.samples_a_pixel(); ++i) {
    raw.samples.push_back(static_cast<uint16_t>(rng.below(levels)));
  }
  return raw;
}

std::string write_by_libpng(const RawPng& raw) {
  std::string file;
  png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(writer);
  png_set_write_fn(writer, &file, append_to_text, nullptr);
  png_set_IHDR(writer, info, static_cast<png_uint_32>(raw.width),
               static_cast<png_uint_32>(raw.height), raw.depth, raw.colour,
               raw.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
  if (raw.colour == 3) {
    std::vector<png_color> palette(raw.palette.size() / 3);
    std::memcpy(palette.data(), raw.palette.data(), raw.palette.size());
    png_set_PLTE(writer, info, palette.data(), static_cast<int>(palette.size()));
  }
  set_transparency(writer, info, raw);
  png_set_gAMA(writer, info, 0.7);
  png_set_filter(writer, 0, PNG_FILTER_NONE << raw.filter);
  png_write_info(writer, info);
  std::vector<std::vector<uint8_t>> rows;
  rows.reserve(static_cast<size_t>(raw.height));
  for (int64_t y = 0; y < raw.height; ++y) {
    rows.push_back(packed_row(raw, y));
  }
  std::vector<png_bytep> pointers;
  pointers.reserve(rows.size());
  for (auto& row : rows) {
    pointers.push_back(row.data());
  }
  png_write_image(writer, pointers.data());
  png_write_end(writer, info);
  png_destroy_write_struct(&writer, &info);
  return file;
}

std::vector<uint16_t> expected_values(const RawPng& raw) {
  std::vector<uint16_t> values;
  const auto samples = static_cast<size_t>(raw.samples_a_pixel());
  const auto scale = raw.depth < 8 ? 255 / ((1 << raw.depth) - 1) : 1;
  const uint16_t opaque = raw.depth == 16 ? 0xffff : 0xff;
  for (size_t at = 0; at < raw.samples.size(); at += samples) {
    const auto* pixel = &raw.samples[at];
    if (raw.colour == 3) {
      for (size_t k = 0; k < 3; ++k) {
        values.push_back(raw.palette[3 * size_t{pixel[0]} + k]);
      }
      if (!raw.transparent.empty()) {
        values.push_back(pixel[0] < raw.transparent.size() ? raw.transparent[pixel[0]] : opaque);
      }
      continue;
    }
    bool is_key = true;
    for (size_t k = 0; k < samples; ++k) {
      values.push_back(static_cast<uint16_t>(pixel[k] * scale));
      is_key = is_key && !raw.transparent.empty() && pixel[k] == raw.transparent[k];
    }
    if (!raw.transparent.empty()) {
      values.push_back(is_key ? 0 : opaque);
    }
  }
  return values;
}

std::string refusal(const std::string& file, const DecodeLimits& limits) {
  try {
    decode_image(file, "set/a.png", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_TRUE(std::string{error.what()}.starts_with("set/a.png: ")) << error.what();
    return error.what();
  }
  return "no error";
}

void expect_refused(const std::string& file, std::string_view text, const DecodeLimits& limits) {
  const auto message = refusal(file, limits);
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

std::vector<uint16_t> read_by_libpng(const std::string& file) {
  struct Source {
    const char* at;
  } source{file.data()};
  png_structp reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(reader);
  png_set_read_fn(reader, &source, [](png_structp self, png_bytep to, size_t count) {
    auto* from = static_cast<Source*>(png_get_io_ptr(self));
    std::memcpy(to, from->at, count);
    from->at += count;
  });
  png_read_png(reader, info, PNG_TRANSFORM_EXPAND, nullptr);
  const size_t row_bytes = png_get_rowbytes(reader, info);
  const bool wide = png_get_bit_depth(reader, info) == 16;
  std::vector<uint16_t> values;
  png_bytepp rows = png_get_rows(reader, info);
  for (png_uint_32 y = 0; y < png_get_image_height(reader, info); ++y) {
    for (size_t i = 0; i < row_bytes; i += wide ? 2 : 1) {
      values.push_back(wide ? static_cast<uint16_t>(rows[y][i] * 256 + rows[y][i + 1])
                            : rows[y][i]);
    }
  }
  png_destroy_read_struct(&reader, &info, nullptr);
  return values;
}

std::vector<uint16_t> values_of(const Image& image) {
  std::vector<uint16_t> values;
  const auto count = static_cast<size_t>(image.width * image.height * image.channels);
  for (size_t i = 0; i < count; ++i) {
    values.push_back(image.depth == 16 ? image.view().row16(0)[i] : image.pixels[i]);
  }
  return values;
}

Image smooth_image(int64_t width, int64_t height, int channels, int depth) {
  Image image = Image::uninitialised(width, height, channels, depth);
  Rng rng{static_cast<uint64_t>(width * height + channels)};
  size_t i = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int k = 0; k < channels; ++k, ++i) {
        const auto phase = static_cast<double>(x + 2 * y + int64_t{40} * k) / 30;
        const double value = 0.5 + 0.4 * std::sin(phase) + rng.uniform(-0.02, 0.02);
        if (depth == 16) {
          const auto number = static_cast<uint16_t>(value * 65535);
          std::memcpy(&image.pixels[2 * i], &number, 2);
        } else {
          image.pixels[i] = static_cast<uint8_t>(value * 255);
        }
      }
    }
  }
  return image;
}

std::string write_jpeg(const Image& image, int components, bool progressive) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &bytes, &size);
  codec.image_width = static_cast<JDIMENSION>(image.width);
  codec.image_height = static_cast<JDIMENSION>(image.height);
  codec.input_components = components;
  codec.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 95, TRUE);
  if (progressive) {
    jpeg_simple_progression(&codec);
  }
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < codec.image_height) {
    JSAMPROW row = image.pixels.get() + codec.next_scanline * image.row_bytes();
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  std::string file{reinterpret_cast<char*>(bytes), size};
  jpeg_destroy_compress(&codec);
  std::free(bytes);
  return file;
}

}  // namespace muster::test
