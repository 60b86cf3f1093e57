#include "image_spool_internal.h"

#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/io/tensor_image.h>

#include <utility>

namespace muster {

ImageSpool::ImageSpool(std::filesystem::path folder, int threads)
    : folder_{std::move(folder)}, pool_{threads} {}

void ImageSpool::add(const at::Tensor& image, LoggedImage entry) {
  if (count_ == 0) {
    make_folder(folder_);
  }
  const auto path = folder_ / format("{:08}.png", count_++);
  entries_.push_back(pool_.submit([pixels = to_pixels(image), path, entry]() mutable {
    const std::string png = encode_png(pixels.view());
    write_file(path, png);
    entry.record.width = pixels.width;
    entry.record.height = pixels.height;
    entry.record.sha256 = sha256_hex(png);
    entry.record.file = path.string();
    return entry;
  }));
}

void ImageSpool::drain(Ledger& ledger) {
  while (!entries_.empty()) {
    auto entry = std::move(entries_.front());
    entries_.pop_front();
    ledger.add_image(entry.get());
  }
}

}  // namespace muster
