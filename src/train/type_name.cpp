#include "type_name_internal.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace muster {

std::string short_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled{
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free};
  std::string_view name = status == 0 ? demangled.get() : type.name();
  name = name.substr(0, name.find('<'));
  const size_t scope = name.rfind("::");
  return std::string{scope == std::string_view::npos ? name : name.substr(scope + 2)};
}

}  // namespace muster
