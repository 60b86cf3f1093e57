#include <muster/base/check.h>
#include <muster/base/digest.h>

#include <array>

#include <openssl/evp.h>

namespace muster {

std::string sha256_hex(std::span<const std::byte> data) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const int ok = EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_sha256(), nullptr);
  check(ok == 1, ErrorKind::io, "OpenSSL cannot compute SHA-256; its configuration may forbid it");
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(size_t{2} * size);
  for (unsigned i = 0; i < size; ++i) {
    text += kHex[digest[i] >> 4U];
    text += kHex[digest[i] & 0xfU];
  }
  return text;
}

std::string sha256_hex(std::string_view data) {
  return sha256_hex(std::as_bytes(std::span{data.data(), data.size()}));
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace muster
