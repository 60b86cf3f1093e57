// The one source that compiles fmt's formatting code; all others see fmt/base.h only.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <muster/base/format.h>

namespace muster {

std::string vformat(fmt::string_view pattern, fmt::format_args args) {
  return fmt::vformat(pattern, args);
}

}  // namespace muster
