#pragma once

#include <muster/comm/group.h>

namespace muster {

/// The group of the job that this process belongs to, by the variables of `muster launch` or
/// torchrun; a group of one where there are none. `timeout` in seconds bounds each wait for another
/// rank. Error of kind `usage` at a second call in a job of several ranks, which have met already.
Group job_group(double timeout = 600.0);

}  // namespace muster
