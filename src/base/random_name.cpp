#include <muster/base/check.h>
#include <muster/base/random_name.h>

#include <sys/random.h>

#include <array>

namespace muster {

std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
  check(got == static_cast<ssize_t>(bytes.size()), ErrorKind::output,
        "the system gives no random bytes");
  std::string name;
  for (const unsigned byte : bytes) {
    name += format("{:02x}", byte);
  }
  return name;
}

}  // namespace muster
