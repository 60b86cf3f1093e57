#include "src/track/event_file_internal.h"

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/base/text.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace muster::track {

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    }
    table[i] = crc;
  }
  return table;
}

constexpr auto crc_table = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(std::string_view bytes) {
  uint64_t crc = 0xFFFFFFFFU;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = __builtin_ia32_crc32di(crc, word);
    bytes.remove_prefix(sizeof(word));
  }
  auto last = static_cast<uint32_t>(crc);
  for (const char c : bytes) {
    last = __builtin_ia32_crc32qi(last, static_cast<unsigned char>(c));
  }
  return ~last;
}
#endif

void put_little_endian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xffU);
  }
}

/// TensorFlow's mask, which keeps a CRC of data that hold CRCs from being weak.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

/// The latest time in the names of the event files of `dir`; 0 when there are none.
int64_t latest_time(const std::filesystem::path& dir) {
  constexpr std::string_view prefix = "events.out.tfevents.";
  int64_t latest = 0;
  for (const auto& entry : std::filesystem::directory_iterator{dir}) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(prefix)) {
      int64_t time = 0;
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), time);
      latest = std::max(latest, time);
    }
  }
  return latest;
}

std::filesystem::path new_name(const std::filesystem::path& dir, double now) {
  make_folder(dir);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) {
    host.front() = '\0';
  }
  const int64_t time = std::max(static_cast<int64_t>(now), latest_time(dir) + 1);
  return dir / format("events.out.tfevents.{:010}.{}.{}.0", time, safe_file_name(host.data(), 100),
                      static_cast<int64_t>(::getpid()));
}

}  // namespace

uint32_t crc32c_by_table(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc = (crc >> 8U) ^ crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xffU];
  }
  return ~crc;
}

uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0) {
    return crc32c_by_instruction(bytes);
  }
#endif
  return crc32c_by_table(bytes);
}

std::string frame_tf_record(std::string_view data) {
  std::string out;
  out.reserve(data.size() + 16);
  put_little_endian(out, data.size(), 8);
  put_little_endian(out, masked_crc(out), 4);
  out += data;
  put_little_endian(out, masked_crc(data), 4);
  return out;
}

EventFile::EventFile(const std::filesystem::path& dir, double now)
    : file_{AppendFile::create(new_name(dir, now))} {}

}  // namespace muster::track
