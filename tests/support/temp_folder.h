#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include <cstdlib>

namespace muster::test {

/// A new, empty folder that goes away with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-test-XXXXXX").native();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error{"no temporary folder"};
    }
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace muster::test
