#include <muster/io/image.h>
#include <muster/matting/errors.h>

#include "libpng_writer.h"
#include "matting_pictures.h"

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

// All eight numbers of a picture of 1920x1080 on one core, once decoded and with three PNGs decoded
// before. The memory is that of a workspace after the picture.

namespace muster {
namespace {

constexpr int64_t width = 1920;
constexpr int64_t height = 1080;

template <typename T>
Picture<T> view(const std::vector<T>& values) {
  return {values.data(), width, height, width};
}

/// Bytes of this process that are in memory.
int64_t resident_bytes() {
  int64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

template <typename T>
void measure(benchmark::State& state, const std::vector<T>& prediction, const std::vector<T>& truth,
             const std::vector<uint8_t>& trimap) {
  mallopt(M_MMAP_THRESHOLD, 1 << 16);  // what is freed is given back, and counts no more
  const int64_t before = resident_bytes();
  MattingWorkspace workspace;
  matting_errors(view(prediction), view(truth), view(trimap), {}, workspace);
  const int64_t used = resident_bytes() - before;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        matting_errors(view(prediction), view(truth), view(trimap), {}, workspace));
  }
  state.counters["bytes/pixel"] = static_cast<double>(used) / (width * height);
}

std::vector<float> floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size());
  std::transform(bytes.begin(), bytes.end(), values.begin(),
                 [](uint8_t value) { return static_cast<float>(value) / 255.0F; });
  return values;
}

void portrait(benchmark::State& state) {
  static const auto mattes = bench::PortraitMaker{width, height}.make();
  measure(state, mattes.prediction, mattes.truth, mattes.trimap);
}

void portrait_of_floats(benchmark::State& state) {
  static const auto mattes = bench::PortraitMaker{width, height}.make();
  static const auto prediction = floats(mattes.prediction);
  static const auto truth = floats(mattes.truth);
  measure(state, prediction, truth, mattes.trimap);
}

Picture8 view(const Image& image) {
  return {image.pixels.get(), image.width, image.height, image.width};
}

/// Prediction, truth and trimap of the portrait.
const std::vector<std::string>& portrait_files() {
  static const std::vector<std::string> files = [] {
    const auto mattes = bench::PortraitMaker{width, height}.make();
    return std::vector{bench::write_by_libpng(mattes.prediction, width),
                       bench::write_by_libpng(mattes.truth, width),
                       bench::write_by_libpng(mattes.trimap, width)};
  }();
  return files;
}

void portrait_of_files(benchmark::State& state) {
  const auto& files = portrait_files();
  MattingWorkspace workspace;
  for (auto _ : state) {
    const Image prediction = decode_image(files[0], "prediction");
    const Image truth = decode_image(files[1], "truth");
    const Image trimap = decode_image(files[2], "trimap");
    benchmark::DoNotOptimize(
        matting_errors(view(prediction), view(truth), view(trimap), {}, workspace));
  }
  for (const auto& file : files) {
    state.counters["file bytes"] += static_cast<double>(file.size());
  }
}

void decoding_of_files(benchmark::State& state) {
  for (auto _ : state) {
    for (const auto& file : portrait_files()) {
      benchmark::DoNotOptimize(decode_image(file, "file"));
    }
  }
}

void pure_noise(benchmark::State& state) {
  static const auto mattes = bench::noise(width, height);
  measure(state, mattes.prediction, mattes.truth, mattes.trimap);
}

/// The least of many short runs is what counts: other processes can only add to it.
double least(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

void repeat(benchmark::internal::Benchmark* benchmark) {
  benchmark->Unit(benchmark::kMillisecond)
      ->Iterations(3)
      ->Repetitions(25)
      ->ComputeStatistics("min", least)
      ->DisplayAggregatesOnly();
}

BENCHMARK(portrait)->Name("8-bit portrait, min at most 15 ms")->Apply(repeat);
BENCHMARK(portrait_of_floats)->Name("float portrait, min at most 20 ms")->Apply(repeat);
BENCHMARK(portrait_of_files)
    ->Name("8-bit portrait of three PNGs, min at most 25 ms")
    ->Apply(repeat);
BENCHMARK(decoding_of_files)->Name("... of which decoding")->Apply(repeat);
BENCHMARK(pure_noise)->Name("8-bit noise, min at most 120 ms")->Apply(repeat);

}  // namespace
}  // namespace muster
