// For bench/peers/matting.py: writes the portrait of matting_bench, and prints what Muster finds in
// it and how long that takes, as one JSON object.
//
//   matting_portrait FOLDER [RUNS]    FOLDER/prediction.pgm, truth.pgm, trimap.pgm

#include <muster/matting/errors.h>

#include "matting_pictures.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

namespace muster {
namespace {

constexpr int64_t width = 1920;
constexpr int64_t height = 1080;

Picture8 view(const std::vector<uint8_t>& values) { return {values.data(), width, height, width}; }

bool write(const std::filesystem::path& path, const std::vector<uint8_t>& values) {
  std::ofstream file{path, std::ios::binary};
  file << "P5\n" << width << ' ' << height << "\n255\n";
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size()));
  return static_cast<bool>(file.flush());
}

void print(const char* name, const RegionErrors& region) {
  const ErrorValues values = region.values.value_or(ErrorValues{});
  std::printf(R"(, "%s": {"sad": %.17g, "mse": %.17g, "grad": %.17g, "conn": %.17g})", name,
              values.sad, values.mse, values.grad, values.conn);
}

int run(const std::filesystem::path& folder, int runs) {
  const auto mattes = bench::PortraitMaker{width, height}.make();
  if (!write(folder / "prediction.pgm", mattes.prediction) ||
      !write(folder / "truth.pgm", mattes.truth) || !write(folder / "trimap.pgm", mattes.trimap)) {
    std::fprintf(stderr, "matting_portrait: cannot write to %s\n", folder.c_str());
    return 1;
  }
  MattingWorkspace workspace;
  MattingErrors errors;
  double least_ms = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    errors = matting_errors(view(mattes.prediction), view(mattes.truth), view(mattes.trimap), {},
                            workspace);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    least_ms = std::min(least_ms, time.count());
  }
  std::printf(R"({"ms": %.17g)", least_ms);
  print("unknown", errors.unknown.value_or(RegionErrors{}));
  print("all", errors.all);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: matting_portrait FOLDER [RUNS]\n");
    return 64;
  }
  return muster::run(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 30);
}
