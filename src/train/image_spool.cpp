#include "image_spool_internal.h"

#include "spool_recovery_internal.h"

#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/io/tensor_image.h>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <utility>

#include <ATen/ops/_to_copy.h>

namespace muster {

struct ImageSpool::Shared {
  std::atomic<bool> warned{false};
  std::mutex records{};
};

namespace {

/// Once a run: most likely the image is in [0, 255], or not denormalised.
void warn_of_clamping(const ImageRecord& image, int64_t clamped, std::atomic<bool>& warned) {
  if (clamped > 0 && !warned.exchange(true)) {
    std::fprintf(
        stderr,
        "muster: the image \"%s\" of sample %lld has %lld values outside [0, 1], which are "
        "clamped; a floating image is logged in [0, 1], one of bytes as uint8\n",
        image.key.c_str(), static_cast<long long>(image.index), static_cast<long long>(clamped));
  }
}

/// For whoever finds the image after this process has died. Not through a link, and without it
/// nothing is missing but this.
void note_record(const std::filesystem::path& path, const ImageRecord& record) {
  const auto records = path.parent_path() / spooled_records;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int file = open(records.c_str(), flags, 0666);
  if (file >= 0) {
    const std::string line = spooled_line(path, record);
    [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
    close(file);
  }
}

LoggedImage encode(const at::Tensor& image, const std::filesystem::path& path, LoggedImage entry,
                   std::atomic<bool>& warned, std::mutex& records) {
  try {
    PngInfo info;
    const std::string png = encode_png(image, {}, &info);
    write_file_atomically(path, png, Durability::process);
    entry.record.width = info.width;
    entry.record.height = info.height;
    entry.record.sha256 = sha256_hex(png);
    entry.record.file = path.string();
    {
      const std::lock_guard lock{records};
      note_record(path, entry.record);
    }
    warn_of_clamping(entry.record, info.out_of_range, warned);
    return entry;
  } catch (const Error& error) {
    throw Error{error.kind(),
                format("the image \"{}\" of sample {}: {}", entry.record.key, entry.record.index,
                       error.what()),
                error.where()};
  }
}

}  // namespace

std::filesystem::path spool_folder(const std::filesystem::path& run_dir, int rank) {
  return run_dir / "spool" / format("rank-{}", rank);
}

ImageSpool::ImageSpool(std::filesystem::path folder, int threads)
    : folder_{std::move(folder)}, shared_{std::make_shared<Shared>()}, pool_{threads} {}

ImageSpool::~ImageSpool() { *dropped_ = true; }

void ImageSpool::add(const at::Tensor& image, LoggedImage entry) {
  check_is_image(image);
  while (!under_way_.empty() &&
         under_way_.front().wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
    take_first();
  }
  const auto path = new_path();
  const at::Tensor copy = at::_to_copy(image.detach(), at::TensorOptions{}.device(at::kCPU));
  under_way_.push_back(pool_.submit(
      [copy, path, entry = std::move(entry), dropped = dropped_, shared = shared_]() mutable {
        return *dropped ? LoggedImage{}
                        : encode(copy, path, std::move(entry), shared->warned, shared->records);
      }));
}

std::filesystem::path ImageSpool::new_path() { return folder_ / format("{:08}.png", count_++); }

void ImageSpool::take_first() {
  auto first = std::move(under_way_.front());
  under_way_.pop_front();
  done_.push_back(first.get());
}

void ImageSpool::drain(Ledger& ledger) {
  while (!under_way_.empty()) {
    take_first();
  }
  for (auto& entry : done_) {
    ledger.add_image(std::move(entry));
  }
  done_.clear();
}

void ImageSpool::clear() {
  *dropped_ = true;
  for (const auto& image : under_way_) {
    image.wait();
  }
  under_way_.clear();
  done_.clear();
  dropped_ = std::make_shared<std::atomic<bool>>(false);
}

}  // namespace muster
