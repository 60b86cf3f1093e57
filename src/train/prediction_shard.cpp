#include <muster/train/prediction_shard.h>

#include <muster/base/check.h>
#include <muster/base/files.h>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>
#include <utility>

namespace muster {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view magic = "MUSTERP1";

/// What stands before the bytes of a prediction.
struct Head {
  std::array<int64_t, 3> numbers{};  ///< loader, index, size
  uint32_t crc = 0;
};
constexpr size_t head_bytes = sizeof(Head::numbers) + sizeof(Head::crc);

uint32_t crc_of(const std::array<int64_t, 3>& numbers, std::string_view bytes) {
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(numbers.data()), sizeof numbers);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return static_cast<uint32_t>(crc);
}

/// Of a call that has just failed.
std::string reason() { return std::generic_category().message(errno); }

/// False at the end of the file.
bool read_exactly(std::FILE* file, void* to, size_t size, const std::filesystem::path& path) {
  const size_t got = std::fread(to, 1, size, file);
  check(std::ferror(file) == 0, ErrorKind::data, "cannot read {}: {}", path.native(), reason());
  check(got == size || (got == 0 && std::feof(file) != 0), ErrorKind::data,
        "{} is cut short in the middle of a prediction", path.native());
  return got == size;
}

Head unpacked(const std::array<char, head_bytes>& bytes) {
  Head head;
  std::memcpy(head.numbers.data(), bytes.data(), sizeof head.numbers);
  std::memcpy(&head.crc, bytes.data() + sizeof head.numbers, sizeof head.crc);
  return head;
}

}  // namespace

PredictionShardWriter::PredictionShardWriter(std::filesystem::path path) : path_{std::move(path)} {}

PredictionShardWriter::~PredictionShardWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

void PredictionShardWriter::open() {
  make_folder(path_.parent_path());
  std::error_code unknown;
  const auto there = std::filesystem::symlink_status(path_, unknown);
  if (is_symlink(there) || is_regular_file(there)) {
    // What a link leads to, or what has a second name, stays as it is.
    unlink(path_.c_str());
  }
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  const int descriptor = ::open(path_.c_str(), flags, 0666);
  file_ = descriptor >= 0 ? fdopen(descriptor, "wb") : nullptr;
  check(file_ != nullptr, ErrorKind::output, "cannot create {}: {}", path_.native(), reason());
  write(magic);
}

void PredictionShardWriter::write(std::string_view bytes) {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  check(written, ErrorKind::io, "cannot write to {}: {}", path_.native(), reason());
}

void PredictionShardWriter::add(const PredictionKey& key, std::string_view bytes) {
  if (file_ == nullptr) open();
  Head head{.numbers = {key.loader, key.index, static_cast<int64_t>(bytes.size())}};
  head.crc = crc_of(head.numbers, bytes);
  std::array<char, head_bytes> packed{};
  std::memcpy(packed.data(), head.numbers.data(), sizeof head.numbers);
  std::memcpy(packed.data() + sizeof head.numbers, &head.crc, sizeof head.crc);
  write({packed.data(), packed.size()});
  write(bytes);
}

void PredictionShardWriter::close() {
  if (file_ == nullptr) open();
  const bool written = std::fclose(std::exchange(file_, nullptr)) == 0;
  check(written, ErrorKind::io, "cannot write to {}: {}", path_.native(), reason());
}

PredictionShard::PredictionShard(const std::filesystem::path& path)
    : path_{path}, file_{std::fopen(path.c_str(), "rbe"), [](std::FILE* file) {
                           if (file != nullptr) std::fclose(file);
                         }} {
  check(file_ != nullptr, ErrorKind::data, "cannot read {}: {}", path.native(), reason());
  std::error_code error;
  const auto length = static_cast<int64_t>(std::filesystem::file_size(path, error));
  check(!error, ErrorKind::data, "cannot read {}: {}", path.native(), error.message());
  std::array<char, magic.size()> begin{};
  check(read_exactly(file_.get(), begin.data(), begin.size(), path_) &&
            std::string_view{begin.data(), begin.size()} == magic,
        ErrorKind::data, "{} is no file of predictions", path.native());
  auto offset = static_cast<int64_t>(magic.size());
  std::array<char, head_bytes> packed{};
  while (read_exactly(file_.get(), packed.data(), packed.size(), path_)) {
    const auto [loader, index, size] = unpacked(packed).numbers;
    offset += static_cast<int64_t>(head_bytes);
    check(size >= 0 && size <= length - offset, ErrorKind::data,
          "{} is damaged or cut short: a prediction of {} bytes at byte {} of {}", path.native(),
          size, offset, length);
    entries_.push_back({.key = {loader, index}, .size = size, .offset = offset});
    offset += size;
    const bool found = fseeko(file_.get(), offset, SEEK_SET) == 0;
    check(found, ErrorKind::io, "cannot read {}: {}", path.native(), reason());
  }
  std::ranges::sort(entries_, {},
                    [](const Entry& entry) { return std::tie(entry.key, entry.offset); });
}

std::string PredictionShard::read(const Entry& entry) const {
  std::array<char, head_bytes> packed{};
  std::string bytes(static_cast<size_t>(entry.size), '\0');
  std::FILE* file = file_.get();
  const bool there = fseeko(file, entry.offset - static_cast<int64_t>(head_bytes), SEEK_SET) == 0 &&
                     std::fread(packed.data(), 1, packed.size(), file) == packed.size() &&
                     std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
  check(std::ferror(file) == 0, ErrorKind::data, "cannot read {}: {}", path_.native(), reason());
  const Head head = unpacked(packed);
  check(there && head.crc == crc_of(head.numbers, bytes), ErrorKind::data,
        "{} is damaged: the prediction for sample {} is not the one that was written",
        path_.native(), entry.key.index);
  return bytes;
}

void merge_shards(
    const std::vector<std::filesystem::path>& shards,
    const std::function<void(const PredictionKey& key, std::string_view bytes)>& sink) {
  std::vector<PredictionShard> all;
  all.reserve(shards.size());
  for (const auto& path : shards) all.emplace_back(path);
  std::vector<size_t> next(all.size(), 0);
  const PredictionKey* before = nullptr;
  while (true) {
    size_t first = all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (next[i] == all[i].entries().size()) continue;
      if (first == all.size() ||
          all[i].entries()[next[i]].key < all[first].entries()[next[first]].key) {
        first = i;
      }
    }
    if (first == all.size()) return;
    const auto& entry = all[first].entries()[next[first]++];
    check(before == nullptr || *before != entry.key, ErrorKind::data,
          "the prediction for sample {} of loader {} is there twice: these shards are not of one "
          "run, or one is given twice",
          entry.key.index, entry.key.loader);
    before = &entry.key;
    sink(entry.key, all[first].read(entry));
  }
}

}  // namespace muster
