#include "image_spool_internal.h"

#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/io/tensor_image.h>

#include <utility>

#include <ATen/ops/_to_copy.h>

namespace muster {

ImageSpool::ImageSpool(std::filesystem::path folder, int threads)
    : folder_{std::move(folder)}, pool_{threads} {}

void ImageSpool::add(const at::Tensor& image, LoggedImage entry) {
  if (count_ == 0) {
    make_folder(folder_);
  }
  const auto path = folder_ / format("{:08}.png", count_++);
  const at::Tensor copy = at::_to_copy(image.detach(), at::TensorOptions{}.device(at::kCPU));
  entries_.push_back(pool_.submit([copy, path, entry = std::move(entry)]() mutable {
    PngInfo info;
    const std::string png = encode_png(copy, {}, &info);
    write_file_atomically(path, png, Durability::process);
    entry.record.width = info.width;
    entry.record.height = info.height;
    entry.record.sha256 = sha256_hex(png);
    entry.record.file = path.string();
    return std::move(entry);
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
