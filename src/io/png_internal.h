#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster {

constexpr std::string_view png_signature{"\x89PNG\r\n\x1a\n"};

inline void put_be32(std::string& to, uint32_t value) {
  for (unsigned shift = 32; shift > 0;) {
    shift -= 8;
    to += static_cast<char>(value >> shift);
  }
}

inline uint32_t get_be32(const char* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    value = value << 8U | static_cast<uint8_t>(from[i]);
  }
  return value;
}

/// Turns a filtered row of a PNG into its bytes, in place. `above` is the finished row above it,
/// zeros for the first; a pixel has `pixel_bytes` bytes: 1, 2, 3, 4, 6 or 8. Behind both rows
/// `unfilter_margin` more bytes must be readable. False when there is no such filter.
constexpr size_t unfilter_margin = 8;
bool png_unfilter(int filter, uint8_t* row, const uint8_t* above, size_t bytes, size_t pixel_bytes);

/// 16 bytes that are worked on at once; compilers map it to whatever the processor has.
using Lanes [[gnu::vector_size(16)]] = uint8_t;
constexpr size_t lanes = sizeof(Lanes);

inline Lanes load_lanes(const uint8_t* from) {
  Lanes value;
  std::memcpy(&value, from, lanes);
  return value;
}

inline void store_lanes(uint8_t* to, Lanes value) { std::memcpy(to, &value, lanes); }

}  // namespace muster
