#pragma once

#include <string>
#include <typeinfo>

namespace muster {

/// A class's name for people: without namespaces, enclosing classes and template arguments.
std::string short_type_name(const std::type_info& type);

}  // namespace muster
