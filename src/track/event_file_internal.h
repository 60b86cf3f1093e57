#pragma once

#include "src/track/append_file_internal.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::track {

/// CRC-32C (Castagnoli), by the processor's instruction where it has one.
uint32_t crc32c(std::string_view bytes);

/// The same from a table alone.
uint32_t crc32c_by_table(std::string_view bytes);

/// One TFRecord: length, its masked CRC, the data, their masked CRC.
std::string frame_tf_record(std::string_view data);

/// An event file of TensorBoard; a new one, later by name than every other of its folder.
class EventFile {
 public:
  /// `now` is Unix time in seconds.
  EventFile(const std::filesystem::path& dir, double now);

  /// Appends a serialized Event by one write(2).
  void append(std::string_view event) { file_.append(frame_tf_record(event)); }
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace muster::track
