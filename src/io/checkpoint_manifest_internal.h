#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster {

/// What `manifest.json` of a checkpoint says.
struct CheckpointManifest {
  struct File {
    uint64_t size = 0;     ///< in bytes
    std::string sha256{};  ///< 64 lower-case hexadecimal digits
  };

  int64_t global_step = 0;
  int64_t epoch = 0;
  std::map<std::string, File> files{};  ///< by name, which is that of a file right in the folder
};

/// Whether `name` can be that of a file right in a folder.
bool is_file_name(std::string_view name);

std::string manifest_json(const CheckpointManifest& manifest);

/// Reads what `manifest_json` wrote; other members are passed over. Error of kind `data` that names
/// `path` and what is missing or wrong.
CheckpointManifest parse_manifest(std::string_view json, std::string_view path);

}  // namespace muster
