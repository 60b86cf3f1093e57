// The frames of .wandb and event files: what is framed is read back, wherever in a block it begins
// and however long it is.
//
// Input: where in the file, two bytes; how often the record repeats the rest; the rest.

#include <zlib.h>

#include "src/track/event_file_internal.h"
#include "src/track/wandb_log_internal.h"
#include "tests/fuzz/target.h"

#include <cstdint>

namespace muster::fuzz {
namespace {

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | static_cast<uint8_t>(bytes[i - 1]);
  }
  return value;
}

/// The record of chunks that begin at `offset` of a file and fill `bytes`.
std::string read_wandb_record(std::string_view bytes, uint64_t offset) {
  std::string record;
  bool inside = false;
  bool is_last = false;
  for (size_t at = 0; !is_last;) {
    const uint64_t left = 32768 - (offset + at) % 32768;
    if (left < 7) {
      at += left;
      continue;
    }
    require(at + 7 <= bytes.size(), "a chunk's header is cut short");
    const auto length = little_endian(bytes.substr(at + 4, 2));
    require(length + 7 <= left && at + 7 + length <= bytes.size(), "a chunk leaves its block");
    const auto checked = bytes.substr(at + 6, length + 1);
    require(crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size()) ==
                little_endian(bytes.substr(at, 4)),
            "a checksum is wrong");
    const int type = checked.front();
    const bool goes_on = type == 3 || type == 4;
    require(type >= 1 && type <= 4 && goes_on == inside, "a chunk of the wrong type");
    inside = true;
    record += checked.substr(1);
    is_last = type == 1 || type == 4;
    at += 7 + length;
    require(!is_last || at == bytes.size(), "bytes follow the record");
  }
  return record;
}

}  // namespace

void check_input(std::string_view input) {
  if (input.size() < 3) {
    return;
  }
  const uint64_t offset = 7 + little_endian(input.substr(0, 2));
  std::string record;
  for (int i = 0; i <= static_cast<uint8_t>(input[2]); ++i) {
    record += input.substr(3);
  }
  require(read_wandb_record(track::frame_wandb_record(record, offset), offset) == record,
          "a record of .wandb reads otherwise");
  const std::string event = track::frame_tf_record(record);
  require(event.size() == record.size() + 16 && little_endian(event.substr(0, 8)) == record.size(),
          "an event's length is wrong");
  require(event.substr(12, record.size()) == record, "an event reads otherwise");
  require(track::crc32c(record) == track::crc32c_by_table(record), "CRCs differ");
}

std::vector<std::string> seeds() {
  return {std::string("\0\0\0abc", 6), std::string("\xf2\x7f\0", 3),
          "\xf0\x7f\xff" + std::string(1000, 'x')};
}

}  // namespace muster::fuzz
