#pragma once

#include "support/temp_folder.h"

#include <muster/base/record.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::test {

using TempDir = TempFolder;

/// A gray PNG of 8 bits with a pattern of its own for each `shade`.
std::string gray_png(int width, int height, int shade);

/// A record whose PNG (gray_png) has been written into `dir`.
ImageRecord make_image(const std::filesystem::path& dir, std::string key, int64_t step,
                       int64_t index, std::string caption, int width = 4, int height = 3,
                       int shade = 0);

/// The bytes that hexadecimal digits name.
std::string from_hex(std::string_view digits);
std::string to_hex(std::string_view bytes);

/// A record of a .wandb file: the field of `Record` that is set, and the items of a config, history
/// or summary (or the paths of a files record) as key -> JSON.
struct WandbEntry {
  int64_t number = 0;
  uint32_t field = 0;
  std::string body{};
  std::map<std::string, std::string> items{};
};

/// Reads a .wandb file up to its first damage, which `is_whole` tells.
std::vector<WandbEntry> read_wandb(const std::filesystem::path& path, bool* is_whole = nullptr);

/// The one .wandb file below dir/wandb.
std::filesystem::path only_wandb_file(const std::filesystem::path& dir);

/// The serialized events of an event file up to its first damage; lengths and CRCs are checked.
std::vector<std::string> read_events(const std::filesystem::path& path, bool* is_whole = nullptr);

std::vector<std::filesystem::path> files_below(const std::filesystem::path& dir);

}  // namespace muster::test
