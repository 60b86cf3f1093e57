#pragma once

#include <muster/comm/group.h>

#include <memory>

namespace muster::detail {

/// The transport of a group of one.
std::unique_ptr<Transport> make_self_transport();

}  // namespace muster::detail
