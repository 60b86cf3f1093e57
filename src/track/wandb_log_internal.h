#pragma once

#include "src/track/append_file_internal.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::track {

/// The bytes that append `record` to a .wandb file of `offset` bytes: LevelDB's log format (blocks
/// of 32 KiB counted from the start of the file, chunks of type full, first, middle, last) with
/// plain CRC-32.
std::string frame_wandb_record(std::string_view record, uint64_t offset);

/// A .wandb file: its seven bytes of header, then records, each appended by one write(2).
class WandbLog {
 public:
  explicit WandbLog(const std::filesystem::path& path);
  void append(std::string_view record);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace muster::track
