#pragma once

#include <string>

namespace muster {

/// 32 hexadecimal digits, at random from the system: a name that nothing else has. Error of kind
/// `output` where the system gives no random bytes.
std::string random_name();

}  // namespace muster
