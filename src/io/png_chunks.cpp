#include <libdeflate.h>
#include <muster/base/check.h>

#include "src/io/png_chunks_internal.h"
#include "src/io/png_internal.h"

namespace muster {
namespace {

struct Chunk {
  std::string_view kind{};
  std::string_view body{};
  uint32_t checksum = 0;
};

/// The chunk at `at`, which moves on to the next.
Chunk next_chunk(std::string_view bytes, std::string_view name, size_t& at) {
  constexpr size_t frame = 12;
  check(bytes.size() - at >= frame, ErrorKind::data,
        "{}: the PNG is cut short: it ends at byte {} without an IEND chunk", name, bytes.size());
  const size_t length = get_be32(bytes.data() + at);
  Chunk chunk;
  chunk.kind = bytes.substr(at + 4, 4);
  for (const char letter : chunk.kind) {
    check((letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z'), ErrorKind::data,
          "{}: the PNG is damaged: at byte {} stands no chunk", name, at);
  }
  check(length <= bytes.size() - at - frame, ErrorKind::data,
        "{}: the PNG is cut short: its {} chunk at byte {} has {} bytes, the file only {} more",
        name, chunk.kind, at, length, bytes.size() - at - frame);
  chunk.body = bytes.substr(at + 8, length);
  chunk.checksum = get_be32(bytes.data() + at + 8 + length);
  at += frame + length;
  return chunk;
}

void check_sum(const Chunk& chunk, std::string_view name) {
  const auto found = libdeflate_crc32(0, chunk.kind.data(), chunk.kind.size() + chunk.body.size());
  check(found == chunk.checksum, ErrorKind::data,
        "{}: the PNG is damaged: the checksum of its {} chunk is wrong", name, chunk.kind);
}

bool depth_fits(int colour, int depth) {
  switch (colour) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

PngChunks read_header(const Chunk& chunk, std::string_view name) {
  check(chunk.kind == "IHDR" && chunk.body.size() == 13, ErrorKind::data,
        "{}: the PNG is damaged: it does not begin with an IHDR chunk of 13 bytes", name);
  check_sum(chunk, name);
  PngChunks png;
  png.width = get_be32(chunk.body.data());
  png.height = get_be32(chunk.body.data() + 4);
  png.depth = static_cast<uint8_t>(chunk.body[8]);
  png.colour = static_cast<uint8_t>(chunk.body[9]);
  png.interlaced = chunk.body[12] == 1;
  constexpr int64_t longest = (int64_t{1} << 31) - 1;
  check(png.width >= 1 && png.height >= 1 && png.width <= longest && png.height <= longest,
        ErrorKind::data, "{}: the PNG is damaged: it claims {} x {} pixels", name, png.width,
        png.height);
  check(depth_fits(png.colour, png.depth) && chunk.body[10] == 0 && chunk.body[11] == 0 &&
            (chunk.body[12] == 0 || chunk.body[12] == 1),
        ErrorKind::data,
        "{}: not a PNG as the standard has it: colour type {}, {} bits, compression {}, filter {}, "
        "interlace {}",
        name, png.colour, png.depth, int{chunk.body[10]}, int{chunk.body[11]}, int{chunk.body[12]});
  return png;
}

void check_colours(const PngChunks& png, std::string_view name) {
  if (png.colour == 3) {
    const auto size = png.palette.size();
    check(size >= 3 && size <= 768 && size % 3 == 0, ErrorKind::data,
          "{}: the PNG is damaged: it has a palette of {} bytes", name, size);
    check(png.transparency.size() <= size / 3, ErrorKind::data,
          "{}: the PNG is damaged: {} alpha values for {} colours of the palette", name,
          png.transparency.size(), size / 3);
  } else if (!png.transparency.empty()) {
    const size_t expected = png.colour == 0 ? 2 : 6;
    check(png.transparency.size() == expected, ErrorKind::data,
          "{}: the PNG is damaged: a tRNS chunk of {} bytes instead of {}", name,
          png.transparency.size(), expected);
  }
}

/// Takes what a chunk says about colours; true when it was of a kind that is known here.
bool take_colours(PngChunks& png, const Chunk& chunk, std::string_view name) {
  if (chunk.kind == "PLTE") {
    if (png.colour == 3) {
      check_sum(chunk, name);
      png.palette = chunk.body;
    }
    return true;
  }
  if (chunk.kind == "tRNS") {
    if (png.colour == 0 || png.colour == 2 || png.colour == 3) {
      check_sum(chunk, name);
      png.transparency = chunk.body;
    }
    return true;
  }
  return false;
}

}  // namespace

int PngChunks::samples_a_pixel() const {
  switch (colour) {
    case 2:
      return 3;
    case 4:
      return 2;
    case 6:
      return 4;
    default:
      return 1;
  }
}

ImageInfo PngChunks::info() const {
  const int alpha = transparency.empty() ? 0 : 1;
  const int channels = colour == 3 ? 3 : samples_a_pixel();
  return {width, height, channels + alpha, depth == 16 ? 16 : 8};
}

PngChunks read_png_chunks(std::string_view bytes, std::string_view name, bool header_only) {
  size_t at = png_signature.size();
  PngChunks png = read_header(next_chunk(bytes, name, at), name);
  while (true) {
    const size_t begin = at;
    if (header_only && bytes.substr(at).substr(0, 8).ends_with("IDAT")) {
      break;
    }
    const Chunk chunk = next_chunk(bytes, name, at);
    if (chunk.kind == "IEND") {
      check(!png.data.empty(), ErrorKind::data, "{}: the PNG is damaged: it holds no pixels", name);
      break;
    }
    if (chunk.kind == "IDAT") {
      check_sum(chunk, name);
      png.data.push_back(chunk.body);
    } else if (png.data.empty() && take_colours(png, chunk, name)) {
      continue;
    } else {
      const bool may_be_skipped = (static_cast<unsigned>(chunk.kind[0]) & 0x20U) != 0;
      check(may_be_skipped, ErrorKind::data,
            "{}: the PNG cannot be read: chunk {} at byte {} is not known or out of place", name,
            chunk.kind, begin);
    }
  }
  check_colours(png, name);
  return png;
}

}  // namespace muster
