#include <muster/base/check.h>
#include <muster/base/error.h>

#include <string_view>

namespace muster {

Error::Error(ErrorKind kind, const std::string& message, std::source_location where)
    : std::runtime_error{message}, kind_{kind}, where_{where} {}

std::string to_string(const std::source_location& where) {
  return format("{}:{}", std::string_view{where.file_name()}, where.line());
}

void detail::throw_error(ErrorKind kind, fmt::string_view pattern, fmt::format_args args,
                         const std::source_location& where) {
  throw Error{kind, vformat(pattern, args), where};
}

}  // namespace muster
