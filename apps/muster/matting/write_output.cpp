#include "output.h"

#include <muster/base/check.h>
#include <muster/base/files.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace muster::app {

namespace fs = std::filesystem;

void write_output(const fs::path& path, std::string_view content) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (!fs::exists(there)) {
    return write_file_atomically(path, content, Durability::process);
  }
  if (fs::is_regular_file(there)) {
    // A link stays one.
    return write_file_atomically(fs::canonical(path), content, Durability::process);
  }
  check(!fs::is_directory(there), ErrorKind::output, "cannot create {}: it is a folder",
        path.native());
  // Renaming onto a device or a pipe would replace it.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "wbe"),
                                                             &std::fclose};
  check(file != nullptr, ErrorKind::output, "cannot write {}: {}", path.native(),
        std::generic_category().message(errno));
  const bool written = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  const bool flushed = std::fflush(file.get()) == 0;  // before errno is read
  check(written && flushed, ErrorKind::io, "cannot write {}: {}", path.native(),
        std::generic_category().message(errno));
}

}  // namespace muster::app
