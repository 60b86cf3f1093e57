#include "src/track/wandb_log_internal.h"

#include <zlib.h>

#include <algorithm>

namespace muster::track {

namespace {

constexpr uint64_t block_bytes = 32768;
constexpr uint64_t chunk_header_bytes = 7;
// ":W&B", 0xBEE1 and version 0, little-endian.
constexpr std::string_view file_header{":W&B\xe1\xbe\x00", 7};

enum class ChunkType : char { full = 1, first = 2, middle = 3, last = 4 };

ChunkType chunk_type(bool is_first, bool is_last) {
  if (is_first) {
    return is_last ? ChunkType::full : ChunkType::first;
  }
  return is_last ? ChunkType::last : ChunkType::middle;
}

void put_little_endian(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xffU);
  }
}

void put_chunk(std::string& out, ChunkType type, std::string_view payload) {
  std::string checked{static_cast<char>(type)};
  checked += payload;
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  put_little_endian(out, static_cast<uint32_t>(crc), 4);
  put_little_endian(out, static_cast<uint32_t>(payload.size()), 2);
  out += checked;
}

}  // namespace

std::string frame_wandb_record(std::string_view record, uint64_t offset) {
  std::string out;
  bool is_first = true;
  bool is_last = false;
  while (!is_last) {
    uint64_t left = block_bytes - (offset + out.size()) % block_bytes;
    if (left < chunk_header_bytes) {
      out.append(left, '\0');
      left = block_bytes;
    }
    const auto piece = record.substr(0, std::min(record.size(), left - chunk_header_bytes));
    record.remove_prefix(piece.size());
    is_last = record.empty();
    put_chunk(out, chunk_type(is_first, is_last), piece);
    is_first = false;
  }
  return out;
}

WandbLog::WandbLog(const std::filesystem::path& path) : file_{AppendFile::create(path)} {
  file_.append(file_header);
}

void WandbLog::append(std::string_view record) {
  file_.append(frame_wandb_record(record, file_.size()));
}

}  // namespace muster::track
