// The variables of mpirun and of srun, and node lists as SLURM writes them.
//
// Input: lines LETTER=VALUE, where the letter chooses the variable, or a node list.

#include <muster/proc/rank_env.h>

#include "src/proc/cluster_env_internal.h"
#include "src/proc/node_list_internal.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/variables.h"

#include <array>

namespace muster::fuzz {
namespace {

constexpr std::array names{"SLURM_PROCID",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_STEP_ID",
                           "SLURM_LOCALID",
                           "SLURM_NODEID",
                           "SLURM_STEP_TASKS_PER_NODE",
                           "SLURM_NODELIST",
                           "SLURM_JOB_ID",
                           "MASTER_ADDR",
                           "RANK",
                           "WORLD_SIZE",
                           "OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "PMI_RANK",
                           "PMI_SIZE"};

void check_environment() {
  const auto env =
      unless_refused(ErrorKind::usage, [] { return rank_env(); }).value_or(std::nullopt);
  if (!env || env->world_size == 1) {
    return;
  }
  require(env->rank >= 0 && env->rank < env->world_size, "a rank outside the world");
  require(env->local_rank >= 0 && env->local_rank < env->local_world_size &&
              env->local_world_size <= env->world_size,
          "a wrong local rank");
  require(env->master_port > 0 && env->master_port <= 65535, "a wrong port");
  require(!env->master_addr.empty(), "a world without a store");
}

}  // namespace

void check_input(std::string_view input) {
  set_variables(names, 'a', input);
  check_environment();
  const auto host =
      unless_refused(ErrorKind::usage, [&] { return detail::first_host(input, "NODES"); });
  if (host) {
    require(!host->empty() && host->size() <= 255 && host->front() != '-' &&
                host->find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789-._") == std::string::npos,
            "no name of a host");
    require(detail::first_host(*host, "NODES") == *host, "a host is a list of itself");
  }
  const auto tasks =
      unless_refused(ErrorKind::usage, [&] { return detail::tasks_on_node(input, 3, "TASKS"); });
  require(!tasks || *tasks > 0, "no tasks on a node");
}

std::vector<std::string> seeds() {
  return {
      "a=5\nb=7\nc=0\nd=1\ne=2\nf=2(x3),1\ng=node[03-05,7]\nh=4711\n",
      "l=1\nm=3\nn=3\n",
      "o=1\np=2\ni=host\n",
      "a=1\nb=2\nc=0\nj=0\nk=2\n",
      "node[03-05,7],other",
      "rack[2-4]n[10-11].site",
      "2(x3),1",
      "4",
  };
}

}  // namespace muster::fuzz
