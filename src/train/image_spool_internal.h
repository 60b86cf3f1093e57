#pragma once

#include <muster/base/thread_pool.h>
#include <muster/metrics/ledger.h>

#include <ATen/core/Tensor.h>

#include <deque>
#include <filesystem>
#include <future>

namespace muster {

/// Encodes images on a pool as they are logged and keeps the PNGs in a folder of this rank's own
/// until they are shipped at the epoch's end.
class ImageSpool {
 public:
  ImageSpool(std::filesystem::path folder, int threads);

  /// Takes a copy of `image` and encodes it; blocks while too many wait.
  void add(const at::Tensor& image, LoggedImage entry);
  /// Waits for all images and hands their entries to the ledger. An image that could not be encoded
  /// or written throws here.
  void drain(Ledger& ledger);

 private:
  std::filesystem::path folder_;
  ThreadPool pool_;
  std::deque<std::future<LoggedImage>> entries_;
  int64_t count_ = 0;
};

}  // namespace muster
