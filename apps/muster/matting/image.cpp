#include "image.h"

#include <muster/base/check.h>
#include <muster/base/files.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace muster::app {

namespace fs = std::filesystem;

namespace {

/// What an image needs beside what grows with it.
constexpr int64_t fixed_bytes = int64_t{1} << 20U;

struct Header {
  ImageInfo info{};
  int64_t file_bytes = 0;

  [[nodiscard]] int64_t pixels() const { return info.width * info.height; }
  [[nodiscard]] int64_t matte_bytes() const { return pixels() * (info.depth / 8); }
  /// To read and decode it, the matte included. An interlaced PNG is unpacked from as much again; a
  /// JPEG of several scans is kept in 16 bits; the compressed bytes of a PNG are put together.
  [[nodiscard]] int64_t decoding_bytes() const {
    const int64_t unpacked = pixels() * info.channels * (info.depth / 8);
    const int64_t times = info.depth == 16 ? 2 : 3;
    return 2 * file_bytes + times * unpacked + matte_bytes();
  }
};

std::string first_bytes(const fs::path& path, size_t most) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose};
  check(file != nullptr, ErrorKind::data, "{}: cannot be read: {}", path.native(),
        std::generic_category().message(errno));
  std::string bytes(most, '\0');
  bytes.resize(std::fread(bytes.data(), 1, most, file.get()));
  check(std::ferror(file.get()) == 0, ErrorKind::data, "{}: cannot be read: {}", path.native(),
        std::generic_category().message(errno));
  return bytes;
}

/// Whether the header goes on behind the first bytes, over long profiles and texts.
bool lacks_header(std::string_view first, std::string_view name) {
  try {
    read_image_info(first, name);
    return false;
  } catch (const Error&) {
    return true;
  }
}

Header read_header(const fs::path& path, MemoryGate& gate) {
  struct stat about {};
  const bool known = stat(path.c_str(), &about) == 0;  // before errno is read
  check(known, ErrorKind::data, "{}: cannot be read: {}", path.native(),
        std::generic_category().message(errno));
  // A pipe would keep everything waiting.
  check(S_ISREG(about.st_mode), ErrorKind::data, "{}: is no regular file", path.native());
  Header header{.file_bytes = about.st_size};
  check(header.file_bytes < MemoryPlan::most_of_an_image / 2, ErrorKind::data,
        "{}: is too large: it has {} bytes", path.native(), header.file_bytes);
  constexpr size_t enough = size_t{64} << 10U;
  const std::string first = first_bytes(path, enough);
  if (first.size() == enough && lacks_header(first, path.native())) {
    const MemoryGate::Pass pass{gate, std::min(header.file_bytes, gate.capacity())};
    header.info =
        read_image_info(read_file(path, static_cast<uint64_t>(header.file_bytes)), path.native());
  } else {
    header.info = read_image_info(first, path.native());
  }
  constexpr DecodeLimits limits;
  const auto& info = header.info;
  check(info.width <= limits.max_side && info.height <= limits.max_side &&
            info.width <= limits.max_pixels / info.height,
        ErrorKind::data,
        "{}: is too large: its header claims {} x {} pixels; at most {} in all and {} a side are "
        "read",
        path.native(), info.width, info.height, limits.max_pixels, limits.max_side);
  return header;
}

void check_size(const MattingSample& sample, const Header& truth, const fs::path& path,
                const Header& other) {
  check(truth.info.width == other.info.width && truth.info.height == other.info.height,
        ErrorKind::data, "{}: has {} x {} pixels, and {} has {} x {}; nothing is resized",
        path.native(), other.info.width, other.info.height, sample.truth.native(), truth.info.width,
        truth.info.height);
}

Image load(const fs::path& path, int64_t already_held) {
  const std::string bytes =
      read_file(path, static_cast<uint64_t>(MemoryPlan::most_of_an_image / 2));
  const DecodeLimits limits{.max_bytes = MemoryPlan::most_of_an_image - already_held -
                                         2 * static_cast<int64_t>(bytes.size())};
  return convert_image(decode_image(bytes, path.native(), limits), ImageMode::alpha);
}

uint16_t* values16(Image& image) { return reinterpret_cast<uint16_t*>(image.pixels.get()); }

/// 257 is 65535 / 255.
Image to_16_bits(const Image& image) {
  Image result = Image::uninitialised(image.width, image.height, 1, 16);
  std::transform(image.pixels.get(), image.pixels.get() + image.bytes(), values16(result),
                 [](uint8_t value) { return static_cast<uint16_t>(257U * value); });
  return result;
}

Image to_8_bits(Image image) {
  if (image.depth == 8) {
    return image;
  }
  Image result = Image::uninitialised(image.width, image.height, 1, 8);
  std::transform(values16(image), values16(image) + image.width * image.height, result.pixels.get(),
                 [](uint16_t value) { return static_cast<uint8_t>((value + 128U) / 257U); });
  return result;
}

template <typename T>
Picture<T> picture(const Image& image) {
  return {reinterpret_cast<const T*>(image.pixels.get()), image.width, image.height, image.width};
}

/// How often the level that both mattes reach changes along the rows, and at each row's start: what
/// the memory of the connectivity error grows with.
template <typename T>
int64_t count_runs(const Picture<T>& prediction, const Picture<T>& truth) {
  constexpr uint32_t full = std::numeric_limits<T>::max();
  const auto level = [](T value) { return 10U * uint32_t{value} / full; };
  int64_t runs = 0;
  for (int64_t y = 0; y < prediction.height; ++y) {
    const T* p = prediction.row(y);
    const T* g = truth.row(y);
    uint32_t before = ~0U;
    for (int64_t x = 0; x < prediction.width; ++x) {
      const uint32_t now = level(std::min(p[x], g[x]));
      runs += now != before ? 1 : 0;
      before = now;
    }
  }
  return runs;
}

/// As `matting_errors` states for its workspace.
int64_t worst_workspace(int64_t width, int64_t height) {
  return (width < 16 ? 30 : 24) * width * height + (int64_t{200} << 10U);
}

int64_t workspace_for_runs(int64_t width, int64_t height, int64_t runs) {
  return worst_workspace(width, height) - 22 * (width * height - runs);
}

template <typename T>
MattingErrors errors_of(const MattingSample& sample, const Mattes& mattes, const ImagePlan& plan,
                        const MattingOptions& options, MattingWorkspace& workspace) {
  const auto prediction = picture<T>(mattes.prediction);
  const auto truth = picture<T>(mattes.truth);
  const auto trimap =
      mattes.trimap ? std::optional{picture<uint8_t>(*mattes.trimap)} : std::nullopt;
  if (plan.counts_runs) {
    const int64_t bytes =
        plan.width * plan.height * static_cast<int64_t>(2 * sizeof(T) + 1) + fixed_bytes +
        workspace_for_runs(plan.width, plan.height, count_runs(prediction, truth));
    check(bytes <= MemoryPlan::most_of_an_image, ErrorKind::data,
          "{}: is too large and noisy: the errors of {} x {} such pixels would take {} bytes, and "
          "at most {} are taken",
          sample.prediction.native(), plan.width, plan.height, bytes, MemoryPlan::most_of_an_image);
  }
  return matting_errors(prediction, truth, trimap, options, workspace);
}

}  // namespace

ImagePlan plan_image(const MattingSample& sample, MemoryGate& gate) {
  const Header truth = read_header(sample.truth, gate);
  const Header prediction = read_header(sample.prediction, gate);
  check_size(sample, truth, sample.prediction, prediction);
  const int64_t pixels = truth.pixels();
  const int64_t grid = std::max(truth.info.depth, prediction.info.depth) / 8;
  int64_t bytes =
      std::max(prediction.decoding_bytes(), prediction.matte_bytes() + truth.decoding_bytes());
  if (sample.trimap) {
    const Header trimap = read_header(*sample.trimap, gate);
    check_size(sample, truth, *sample.trimap, trimap);
    bytes = std::max(bytes, 2 * grid * pixels + trimap.decoding_bytes() + pixels);
  }
  const int64_t to_compute =
      (2 * grid + 1) * pixels + worst_workspace(truth.info.width, truth.info.height);
  bytes = std::max(bytes, to_compute) + fixed_bytes;
  // What decoding really takes is checked by the decoder, which knows the whole header.
  return {.width = truth.info.width,
          .height = truth.info.height,
          .bytes = std::min(bytes, MemoryPlan::most_of_an_image),
          .counts_runs = to_compute + fixed_bytes > MemoryPlan::most_of_an_image};
}

Mattes load_mattes(const MattingSample& sample) {
  Mattes mattes;
  mattes.prediction = load(sample.prediction, fixed_bytes);
  mattes.truth = load(sample.truth, fixed_bytes + mattes.prediction.bytes());
  if (mattes.prediction.depth != mattes.truth.depth) {
    Image& coarse = mattes.prediction.depth == 8 ? mattes.prediction : mattes.truth;
    coarse = to_16_bits(coarse);
  }
  if (sample.trimap) {
    mattes.trimap = to_8_bits(
        load(*sample.trimap, fixed_bytes + mattes.prediction.bytes() + mattes.truth.bytes()));
  }
  return mattes;
}

ImageRow compute_errors(const MattingSample& sample, const Mattes& mattes, const ImagePlan& plan,
                        const MattingOptions& options, MattingWorkspace& workspace) {
  const MattingErrors errors = mattes.truth.depth == 16
                                   ? errors_of<uint16_t>(sample, mattes, plan, options, workspace)
                                   : errors_of<uint8_t>(sample, mattes, plan, options, workspace);
  ImageRow row{.width = mattes.truth.width,
               .height = mattes.truth.height,
               .all = {.n = errors.all.n, .values = errors.all.values}};
  if (errors.unknown) {
    row.unknown = RegionRow{.n = errors.unknown->n, .values = errors.unknown->values};
  }
  return row;
}

}  // namespace muster::app
