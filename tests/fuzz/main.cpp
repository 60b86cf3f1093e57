// The frame of every fuzz target. `TARGET_fuzz --seeds=FOLDER` writes what the corpus begins with
// and ends; all else is libFuzzer's.

#include "tests/fuzz/target.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace {

int write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& seed : muster::fuzz::seeds()) {
    std::ofstream file{folder / ("seed-" + std::to_string(number++)), std::ios::binary};
    file << seed;
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write seeds to %s\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view option = "--seeds=";
  const std::string_view first = *count > 1 ? (*arguments)[1] : "";
  if (first.starts_with(option)) {
    std::exit(write_seeds(first.substr(option.size())));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::fuzz::check_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
