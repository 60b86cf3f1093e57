#include "spool_recovery_internal.h"

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/base/json_writer.h>

#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Folder N is the first that is not there yet.
fs::path new_folder(const fs::path& recovered) {
  int64_t number = 1;
  std::error_code ignored;
  while (fs::exists(recovered / std::to_string(number), ignored)) ++number;
  return recovered / std::to_string(number);
}

}  // namespace

std::string spooled_line(const fs::path& file, const ImageRecord& record) {
  JsonWriter json;
  json.begin_object();
  json.key("key").value(record.key);
  json.key("step").value(record.step);
  json.key("index").value(record.index);
  json.key("caption").value(record.caption);
  json.key("sha256").value(record.sha256);
  json.end_object();
  return file.filename().string() + " " + json.text() + "\n";
}

int64_t recover_spool(const fs::path& run_dir) {
  fs::path target;
  int64_t images = 0;
  std::error_code ignored;
  std::vector<fs::path> ranks;
  for (const auto& entry : fs::directory_iterator{run_dir / "spool", ignored}) {
    ranks.push_back(entry.path());
  }
  for (const auto& rank : ranks) {
    const auto records = read_file_if_there(rank / spooled_records);
    std::istringstream lines{records.value_or("")};
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      const std::string name = line.substr(0, line.find(' '));
      if (name.empty() || name.find('/') != std::string::npos ||
          !fs::is_regular_file(rank / name, ignored)) {
        continue;  // logged, or cut short
      }
      if (target.empty()) target = new_folder(run_dir / "recovered");
      const fs::path folder = target / rank.filename();
      make_folder(folder);
      fs::rename(rank / name, folder / name);
      kept += line + "\n";
      ++images;
    }
    if (!kept.empty()) write_file_atomically(target / rank.filename() / spooled_records, kept);
  }
  return images;
}

}  // namespace muster
