#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// The whole file. Error of kind `data` that names the path when it cannot be read, has more than
/// `max_bytes` bytes, or is a pipe or a device, which might never end.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32U);

/// The whole file, or nothing when there is none; errors as of `read_file`.
std::optional<std::string> read_file_if_there(const std::filesystem::path& path,
                                              uint64_t max_bytes = uint64_t{1} << 32U);

/// The same of what a user names, which may be a pipe or a device: it is read to its end.
std::optional<std::string> read_input_if_there(const std::filesystem::path& path,
                                               uint64_t max_bytes);

/// What a written file survives.
enum class Durability {
  process,    ///< the end of this process
  power_cut,  ///< that of the machine too: fsync of the file and its folder
};

/// Writes by way of a temporary file beside it and rename: a reader sees the old content or
/// the new. Makes missing folders. Error of kind `output` (cannot be created) or `io` (cannot be
/// written).
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Durability durability = Durability::power_cut);

/// Makes `target` name the bytes of `source`: a hard link where the file system allows it, else a
/// copy. Does nothing when `target` is there already. Makes missing folders; errors as for reading
/// and writing.
void link_or_copy(const std::filesystem::path& source, const std::filesystem::path& target);

/// Makes the folder and those above it; Error of kind `output` that names it when that fails.
void make_folder(const std::filesystem::path& path);

/// Removes a folder that is empty; does nothing else. A link to a folder stays: who has put it
/// there wants what is written to lie elsewhere.
void remove_if_empty(const std::filesystem::path& folder);

}  // namespace muster
