#include <muster/base/check.h>
#include <muster/comm/c10d.h>
#include <muster/proc/rank_env.h>
#include <muster/train/job.h>

#include <atomic>

namespace muster {

Group job_group(double timeout) {
  const auto env = rank_env();
  if (!env || env->world_size == 1) {
    return Group::self();
  }
  // The rendezvous that the launcher passed in the environment serves this process once.
  static std::atomic_flag met = ATOMIC_FLAG_INIT;
  check(!met.test_and_set(),
        "the ranks of this job have met already; give a second Trainer the group of the first: "
        "Trainer{{options, first.group()}}");
  return make_c10d_group({.rank = env->rank,
                          .size = env->world_size,
                          .master_addr = env->master_addr,
                          .master_port = env->master_port,
                          .store_fd = env->store_fd,
                          .agent_store = env->agent_store,
                          .one_host = env->local_world_size == env->world_size,
                          .key_prefix = env->job,
                          .timeout = timeout});
}

}  // namespace muster
