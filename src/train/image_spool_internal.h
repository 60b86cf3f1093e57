#pragma once

#include <muster/base/thread_pool.h>
#include <muster/metrics/ledger.h>

#include <ATen/core/Tensor.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <vector>

namespace muster {

/// Where rank `rank` keeps what is not in the run yet.
std::filesystem::path spool_folder(const std::filesystem::path& run_dir, int rank);

/// Encodes images on a pool as they are logged and keeps the PNGs in a folder of this rank's own
/// until they are shipped at the epoch's end, with what they are beside them. One thread uses it.
/// The destructor drops what waits.
class ImageSpool {
 public:
  ImageSpool(std::filesystem::path folder, int threads);
  ImageSpool(const ImageSpool&) = delete;
  ImageSpool& operator=(const ImageSpool&) = delete;
  ~ImageSpool();

  /// Takes a copy of `image` and encodes it; blocks while too many wait. Error of kind `usage` for
  /// what is no image. An earlier image that could not be encoded or written throws here, or in
  /// `drain`; the message names its key and sample.
  void add(const at::Tensor& image, LoggedImage entry);
  /// Where the next PNG of this rank may lie.
  [[nodiscard]] std::filesystem::path new_path();
  /// Waits for all images and hands their entries to the ledger.
  void drain(Ledger& ledger);
  /// Forgets the images of an epoch that failed.
  void clear();

 private:
  /// What the threads of the pool share.
  struct Shared;

  void take_first();

  std::filesystem::path folder_;
  std::deque<std::future<LoggedImage>> under_way_;
  std::vector<LoggedImage> done_;
  int64_t count_ = 0;
  std::shared_ptr<std::atomic<bool>> dropped_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<Shared> shared_;
  ThreadPool pool_;  // ends first
};

}  // namespace muster
