#include "training_id_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/io/checkpoint_folder.h>

#include <system_error>

namespace fs = std::filesystem;

namespace muster {

namespace {

fs::path note_in(const fs::path& run_dir) { return run_dir / "training.txt"; }

}  // namespace

void remember_training(const fs::path& run_dir, const std::string& id) {
  if (remembered_training(run_dir) == id) return;
  if (!id.empty()) {
    write_file_atomically(note_in(run_dir), id + "\n");
    return;
  }
  std::error_code ignored;
  fs::remove(note_in(run_dir), ignored);
}

std::string remembered_training(const fs::path& run_dir) {
  constexpr uint64_t most = 1000;
  try {
    std::string text = read_file_if_there(note_in(run_dir), most).value_or("");
    if (text.ends_with('\n')) text.pop_back();
    return is_training_id(text) ? text : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace muster
