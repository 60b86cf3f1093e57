// Decoding of PNGs. A random change breaks a checksum or the compressed stream and would get no
// further, so each input is tried three times: as it is, with its chunks' lengths and checksums put
// right, and with what stands in its IDAT chunks taken for the rows before compression. What libpng
// reads without complaint must be the same pixels.

#include <libdeflate.h>
#include <muster/io/png.h>

#include "src/io/png_internal.h"
#include "tests/fuzz/libpng_reader.h"
#include "tests/fuzz/pictures.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <array>

namespace muster::fuzz {
namespace {

constexpr size_t header_end = 33;  // of the signature and IHDR

struct Chunk {
  std::string kind{};
  std::string body{};
};

std::string file_of(const std::vector<Chunk>& chunks) {
  std::string file{png_signature};
  for (const auto& [kind, body] : chunks) {
    put_be32(file, static_cast<uint32_t>(body.size()));
    const size_t begin = file.size();
    file += kind + body;
    put_be32(file, libdeflate_crc32(0, file.data() + begin, file.size() - begin));
  }
  return file;
}

/// A chunk that claims more than there is gets what there is.
std::vector<Chunk> chunks_of(std::string_view file) {
  std::vector<Chunk> chunks;
  for (size_t at = png_signature.size(); file.size() - at >= 12;) {
    const size_t most = file.size() - at - 12;
    const size_t length = std::min<size_t>(get_be32(file.data() + at), most);
    chunks.push_back(
        {std::string{file.substr(at + 4, 4)}, std::string{file.substr(at + 8, length)}});
    at += 12 + length;
  }
  return chunks;
}

std::string deflated(std::string_view rows) {
  libdeflate_compressor* engine = libdeflate_alloc_compressor(1);
  std::string out(libdeflate_zlib_compress_bound(engine, rows.size()), '\0');
  out.resize(libdeflate_zlib_compress(engine, rows.data(), rows.size(), out.data(), out.size()));
  libdeflate_free_compressor(engine);
  return out;
}

/// Bytes of all rows with their filters' bytes, by the letter of the standard; 0 where the header
/// makes no sense or claims much.
size_t bytes_of_rows(std::string_view header) {
  const uint32_t width = get_be32(header.data());
  const uint32_t height = get_be32(header.data() + 4);
  const auto depth = static_cast<uint8_t>(header[8]);
  const auto colour = static_cast<uint8_t>(header[9]);
  if (width > 200 || height > 200 || depth > 16 || colour > 6) {
    return 0;
  }
  const size_t samples = colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
  using Pass = std::array<uint32_t, 4>;  // first column and row, steps
  std::vector<Pass> passes{{0, 0, 1, 1}};
  if (header[12] == 1) {
    passes = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  }
  size_t total = 0;
  for (const auto& [x0, y0, dx, dy] : passes) {
    size_t columns = 0;
    for (uint32_t x = x0; x < width; x += dx) {
      ++columns;
    }
    for (uint32_t y = y0; y < height && columns > 0; y += dy) {
      total += 1 + (columns * samples * depth + 7) / 8;
    }
  }
  return total;
}

/// The file whose compressed rows are the bytes of the IDAT chunks, over and over.
std::string with_rows_deflated(const std::vector<Chunk>& chunks) {
  std::string bytes;
  std::vector<Chunk> result;
  for (const auto& chunk : chunks) {
    if (chunk.kind == "IDAT") {
      bytes += chunk.body;
    } else if (chunk.kind != "IEND") {
      result.push_back(chunk);
    }
  }
  std::string rows;
  const size_t size = bytes_of_rows(chunks.front().body);
  while (!bytes.empty() && rows.size() < size) {
    rows.append(bytes, 0, size - rows.size());
  }
  result.push_back({"IDAT", deflated(rows)});
  result.push_back({"IEND", ""});
  return file_of(result);
}

void check_file(std::string_view file) {
  const auto image = decode_and_check(file);
  if (image) {
    const auto theirs = LibpngReader{file}.pixels();
    require(!theirs || std::equal(theirs->begin(), theirs->end(), image->pixels.get(),
                                  image->pixels.get() + image->bytes()),
            "libpng reads other pixels");
    const std::string again = encode_png(image->view(), {.level = 1});
    require(same_pixels(decode_image(again, "again"), *image), "what was written reads otherwise");
  }
}

Chunk header(int width, int height, int depth, int colour, bool interlaced) {
  std::string body;
  put_be32(body, static_cast<uint32_t>(width));
  put_be32(body, static_cast<uint32_t>(height));
  body += static_cast<char>(depth);
  body += static_cast<char>(colour);
  body.append(2, '\0');
  body += interlaced ? '\1' : '\0';
  return {"IHDR", body};
}

/// Rows with each filter in turn.
std::string rows_for(const Chunk& header, int height) {
  std::string rows(bytes_of_rows(header.body), '\0');
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<char>(i * 37 % 251);
  }
  const size_t row_bytes = rows.size() / static_cast<size_t>(height);
  for (size_t y = 0; header.body[12] == 0 && y * row_bytes < rows.size(); ++y) {
    rows[y * row_bytes] = static_cast<char>(y % 5);
  }
  return header.body[12] == 0 ? rows : std::string(rows.size(), '\0');
}

}  // namespace

void check_input(std::string_view input) {
  check_file(input);
  if (!input.starts_with(png_signature) || input.size() < header_end) {
    return;
  }
  const auto chunks = chunks_of(input);
  check_file(file_of(chunks));
  if (chunks.front().body.size() >= 13) {
    check_file(with_rows_deflated(chunks));
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> files;
  constexpr int kinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                              {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
  for (const auto& [colour, depth] : kinds) {
    for (const bool interlaced : {false, true}) {
      constexpr int width = 11;
      constexpr int height = 10;
      const Chunk first = header(width, height, depth, colour, interlaced);
      std::vector<Chunk> chunks{first, {"gAMA", std::string("\0\0\xb1\x8f", 4)}};
      if (colour == 3) {
        chunks.push_back({"PLTE", std::string(size_t{3} << static_cast<unsigned>(depth), 'p')});
      }
      if (colour == 0 || (colour >= 2 && colour <= 3)) {
        chunks.push_back({"tRNS", std::string(colour == 2 ? 6 : 2, '\0')});
      }
      const std::string rows = rows_for(first, height);
      const std::string packed = deflated(rows);
      auto split = chunks;
      chunks.push_back({"IDAT", rows});
      chunks.push_back({"IEND", ""});
      split.push_back({"IDAT", packed.substr(0, 5)});
      split.push_back({"IDAT", packed.substr(5)});
      split.push_back({"IEND", ""});
      files.push_back(file_of(chunks));
      files.push_back(file_of(split));
    }
  }
  return files;
}

}  // namespace muster::fuzz
