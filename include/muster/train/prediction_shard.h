#pragma once

#include <muster/value/convert.h>
#include <muster/value/value.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Which sample a prediction is of; what puts predictions in order.
struct PredictionKey {
  int64_t loader = 0;  ///< of several loaders; 0 where there is one
  int64_t index = 0;   ///< global index of the sample in the loader's data set

  friend auto operator<=>(const PredictionKey&, const PredictionKey&) = default;
};

/// Writes predictions of one rank to a file as they are made. The file is "MUSTERP1", then for each
/// prediction loader, index and size of its bytes (int64 each, little-endian), the CRC-32 of these
/// and of the bytes (uint32), and the bytes. One thread.
class PredictionShardWriter {
 public:
  /// The file is made at the first `add` or at `close`, with folders above it that are missing; an
  /// old one is replaced.
  explicit PredictionShardWriter(std::filesystem::path path);
  PredictionShardWriter(const PredictionShardWriter&) = delete;
  PredictionShardWriter& operator=(const PredictionShardWriter&) = delete;
  ~PredictionShardWriter();

  /// Error of kind `io` that names the path when the disk takes no more.
  void add(const PredictionKey& key, std::string_view bytes);
  /// Writes out what is buffered. Errors as by `add`; nothing may be added afterwards.
  void close();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void open();
  void write(std::string_view bytes);

  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

/// Reads such a file in the order of keys, wherever in the file they are: about 32 bytes of memory
/// for each prediction, and one prediction at a time. Movable; one thread.
class PredictionShard {
 public:
  struct Entry {
    PredictionKey key{};
    int64_t size = 0;    ///< bytes
    int64_t offset = 0;  ///< of the bytes in the file
  };

  /// Error of kind `data` that names the path for what is no such file, or one that is cut short.
  explicit PredictionShard(const std::filesystem::path& path);

  /// By rising key.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Error of kind `data` when they are damaged.
  [[nodiscard]] std::string read(const Entry& entry) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<std::FILE> file_;
  std::vector<Entry> entries_{};
};

/// Gives `sink` what the shards hold in the order of keys, one prediction at a time: the order of
/// the data set. Error of kind `data` for a damaged shard, and for a key that comes twice.
void merge_shards(
    const std::vector<std::filesystem::path>& shards,
    const std::function<void(const PredictionKey& key, std::string_view bytes)>& sink);

/// The same with the predictions as what predict_step gave.
template <typename O>
void merge_shards(const std::vector<std::filesystem::path>& shards,
                  const std::function<void(const PredictionKey& key, O output)>& sink) {
  merge_shards(shards, std::function<void(const PredictionKey&, std::string_view)>{
                           [&](const PredictionKey& key, std::string_view bytes) {
                             sink(key, from_value<O>(from_bytes(bytes)));
                           }});
}

}  // namespace muster
