#pragma once

#include <muster/comm/group.h>
#include <muster/train/keyed_output.h>

#include <string>
#include <vector>

namespace muster {

/// All ranks' outputs in data-set order, gathered in rounds of bounded size; nothing where `keep`
/// is false.
std::vector<std::string> collect_in_order(Group& group, const std::vector<KeyedOutput>& mine,
                                          bool keep);

}  // namespace muster
