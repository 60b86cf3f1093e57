#pragma once

#include <string>
#include <string_view>

namespace muster::detail {

/// The first host of a node list as SLURM writes them: "node[03-05,7],other" gives "node03". Error
/// of kind `usage` that names `variable` when it is none.
std::string first_host(std::string_view list, std::string_view variable);

/// Tasks on the node number `node` (from 0) by SLURM_TASKS_PER_NODE: "2(x3),1" is 2 on the nodes 0
/// to 2 and 1 on node 3. Error of kind `usage` that names `variable` when it is none or has no such
/// node.
int tasks_on_node(std::string_view list, int node, std::string_view variable);

}  // namespace muster::detail
