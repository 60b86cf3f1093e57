#include <muster/base/check.h>
#include <muster/base/env.h>
#include <muster/proc/rank_env.h>

#include <sys/socket.h>

#include <climits>

#include "src/proc/cluster_env_internal.h"

namespace muster {

namespace {

constexpr const char* what_to_do =
    "start the program with 'muster launch', torchrun, mpirun or srun, or unset them to run one "
    "process";

std::optional<int> number(const char* name, int64_t lowest) {
  const auto value = env_integer(name, lowest);
  if (!value) {
    return std::nullopt;
  }
  check(*value <= INT_MAX, "{}={} is out of range", name, *value);
  return static_cast<int>(*value);
}

void read_ranks(RankEnv& env, int rank, int world_size) {
  check(rank < world_size, "RANK={} is not below WORLD_SIZE={}; {}", rank, world_size, what_to_do);
  env.rank = rank;
  env.world_size = world_size;
  const auto local_rank = number("LOCAL_RANK", 0);
  const auto local_world_size = number("LOCAL_WORLD_SIZE", 1);
  env.local_rank = local_rank.value_or(rank);
  env.local_world_size = local_world_size.value_or(world_size);
  check(env.local_rank <= rank, "LOCAL_RANK={} is above RANK={}; {}", env.local_rank, rank,
        what_to_do);
  check(env.local_world_size <= world_size, "LOCAL_WORLD_SIZE={} is above WORLD_SIZE={}; {}",
        env.local_world_size, world_size, what_to_do);
  check(env.local_rank < env.local_world_size,
        "LOCAL_RANK={} is not below LOCAL_WORLD_SIZE={} (RANK and WORLD_SIZE stand in for those "
        "that are unset); {}",
        env.local_rank, env.local_world_size, what_to_do);
}

void read_master(RankEnv& env) {
  const auto address = env_text("MASTER_ADDR");
  const auto port = number("MASTER_PORT", 1);
  if (env.world_size > 1) {
    check(address && port, "WORLD_SIZE={} needs MASTER_ADDR and MASTER_PORT, and {} is unset; {}",
          env.world_size, address ? "MASTER_PORT" : "MASTER_ADDR", what_to_do);
  }
  env.master_addr = address.value_or("");
  env.master_port = port.value_or(0);
  check(env.master_port <= 65535, "MASTER_PORT={} is no port; expected 1 to 65535",
        env.master_port);
}

int inherited_listener() {
  const auto descriptor = number("MUSTER_STORE_FD", 0);
  if (!descriptor) {
    return -1;
  }
  int listening = 0;
  socklen_t size = sizeof listening;
  const bool is_listener =
      getsockopt(*descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
  check(
      is_listener, ErrorKind::rendezvous,
      "MUSTER_STORE_FD={} is not a listening socket: a program between the launcher and rank 0 has "
      "closed it; let it keep the descriptors it inherits",
      *descriptor);
  return *descriptor;
}

// What mpirun or srun say, unless a launcher that they have started has started this process.
std::optional<detail::ClusterEnv> cluster_env_of_this_process() {
  const bool has_launcher = env_text("MUSTER_LAUNCHED") || env_text("TORCHELASTIC_RUN_ID");
  return has_launcher ? std::nullopt : detail::cluster_env();
}

void check_alike(const detail::ClusterEnv& cluster, int rank, int world_size) {
  constexpr const char* rule =
      "RANK and WORLD_SIZE count where 'muster launch' or torchrun has started the process, else "
      "unset them to take those of mpirun or srun";
  check(rank == cluster.rank, "RANK={} contradicts {}={}; {}", rank, cluster.rank_variable,
        cluster.rank, rule);
  check(world_size == cluster.world_size, "WORLD_SIZE={} contradicts {}={}; {}", world_size,
        cluster.size_variable, cluster.world_size, rule);
}

RankEnv of_cluster(const detail::ClusterEnv& cluster) {
  const auto check_below = [&](bool is_below) {
    check(is_below,
          "{}={} with {}={} and, on this host, rank {} of {}: these cannot all be right; {}",
          cluster.rank_variable, cluster.rank, cluster.size_variable, cluster.world_size,
          cluster.local_rank, cluster.local_world_size, what_to_do);
  };
  check_below(cluster.rank < cluster.world_size && cluster.local_rank <= cluster.rank &&
              cluster.local_world_size <= cluster.world_size &&
              cluster.local_rank < cluster.local_world_size);
  RankEnv env{.rank = cluster.rank,
              .local_rank = cluster.local_rank,
              .world_size = cluster.world_size,
              .local_world_size = cluster.local_world_size,
              .job = cluster.job};
  env.master_addr = env_text("MASTER_ADDR").value_or(cluster.master_addr);
  check(!env.master_addr.empty(),
        "{}={} over several hosts needs MASTER_ADDR, the host of rank 0, the same for all ranks",
        cluster.size_variable, cluster.world_size);
  env.master_port = number("MASTER_PORT", 1).value_or(detail::port_of_job(cluster.job));
  check(env.master_port <= 65535, "MASTER_PORT={} is no port; expected 1 to 65535",
        env.master_port);
  return env;
}

}  // namespace

std::optional<RankEnv> rank_env() {
  const auto rank = number("RANK", 0);
  const auto world_size = number("WORLD_SIZE", 1);
  const auto cluster = cluster_env_of_this_process();
  if (!rank && !world_size && cluster) {
    return of_cluster(*cluster);
  }
  if (!rank && !world_size) {
    check(!env_text("LOCAL_RANK"), "LOCAL_RANK is set, but neither RANK nor WORLD_SIZE is; {}",
          what_to_do);
    return std::nullopt;
  }
  check(rank && world_size, "{} is set, but {} is not; {}", rank ? "RANK" : "WORLD_SIZE",
        rank ? "WORLD_SIZE" : "RANK", what_to_do);
  if (cluster) {
    check_alike(*cluster, *rank, *world_size);
  }
  RankEnv env;
  read_ranks(env, *rank, *world_size);
  read_master(env);
  env.launched = env_text("MUSTER_LAUNCHED").has_value();
  if (env.launched) {
    env.job = env_text("MUSTER_JOB").value_or("");
    env.store_fd = env.rank == 0 ? inherited_listener() : -1;
  } else {
    const auto agent_store = env_text("TORCHELASTIC_USE_AGENT_STORE");
    env.agent_store = agent_store == "True" || agent_store == "true" || agent_store == "1";
    // The agent's store outlives a restart, and with it the keys of the attempt before.
    env.job = env_text("TORCHELASTIC_RUN_ID").value_or("") + "/" +
              env_text("TORCHELASTIC_RESTART_COUNT").value_or("0");
  }
  return env;
}

}  // namespace muster
