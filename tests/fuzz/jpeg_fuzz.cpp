// Decoding of JPEGs: what libjpeg reports, and how, for broken files.

#include "tests/fuzz/pictures.h"
#include "tests/fuzz/target.h"

#include <cstdio>
#include <cstdlib>

// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

namespace muster::fuzz {
namespace {

struct Kind {
  int components = 3;
  bool progressive = false;
  bool arithmetic = false;
  int restart_rows = 0;
  int sampling = 1;  ///< horizontally, of the first component
};

std::string written(const Kind& kind) {
  constexpr int width = 37;
  constexpr int height = 21;
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &bytes, &size);
  codec.image_width = width;
  codec.image_height = height;
  codec.input_components = kind.components;
  codec.in_color_space = kind.components == 1   ? JCS_GRAYSCALE
                         : kind.components == 3 ? JCS_RGB
                                                : JCS_CMYK;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, 60, TRUE);
  codec.arith_code = kind.arithmetic ? TRUE : FALSE;
  codec.restart_in_rows = kind.restart_rows;
  codec.comp_info[0].h_samp_factor = kind.sampling;
  if (kind.progressive) {
    jpeg_simple_progression(&codec);
  }
  jpeg_start_compress(&codec, TRUE);
  std::vector<unsigned char> row(static_cast<size_t>(width * kind.components));
  while (codec.next_scanline < codec.image_height) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<unsigned char>(i * 5 + codec.next_scanline * 9);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&codec, &pointer, 1);
  }
  jpeg_finish_compress(&codec);
  std::string file{reinterpret_cast<char*>(bytes), size};
  jpeg_destroy_compress(&codec);
  std::free(bytes);
  return file;
}

}  // namespace

void check_input(std::string_view input) {
  decode_and_check(input);
  decode_and_check("\xff\xd8\xff" + std::string{input.substr(std::min<size_t>(3, input.size()))});
}

std::vector<std::string> seeds() {
  std::vector<std::string> files;
  for (const int components : {1, 3, 4}) {
    for (const bool progressive : {false, true}) {
      files.push_back(written({.components = components, .progressive = progressive}));
      files.push_back(written({.components = components,
                               .progressive = progressive,
                               .restart_rows = 1,
                               .sampling = 2}));
      files.push_back(
          written({.components = components, .progressive = progressive, .arithmetic = true}));
    }
  }
  return files;
}

}  // namespace muster::fuzz
