#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// SHA-256 of `data` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> data);
std::string sha256_hex(std::string_view data);

/// Whether `text` has the form that `sha256_hex` gives.
bool is_sha256_hex(std::string_view text);

}  // namespace muster
