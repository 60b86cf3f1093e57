#include "src/proc/cluster_env_internal.h"

#include <muster/base/check.h>
#include <muster/base/env.h>

#include <unistd.h>

#include <array>
#include <climits>

#include "src/proc/node_list_internal.h"

namespace muster::detail {

namespace {

/// The names under which a family of launchers says the same four things.
struct Names {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr std::array<Names, 2> mpi{{
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
}};

std::optional<int> number(const char* name, int64_t lowest) {
  const auto value = env_integer(name, lowest);
  check(!value || *value <= INT_MAX, "{} is out of range", name);
  return value ? std::optional{static_cast<int>(*value)} : std::nullopt;
}

// The first of the names that is set.
const char* name_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (env_text(name)) {
      return name;
    }
  }
  return nullptr;
}

std::optional<ClusterEnv> of_mpi(const Names& names) {
  const auto rank = number(names.rank, 0);
  const auto size = number(names.size, 1);
  if (!rank || !size) {
    return std::nullopt;
  }
  ClusterEnv env{
      .rank_variable = names.rank, .size_variable = names.size, .rank = *rank, .world_size = *size};
  env.local_rank = number(names.local_rank, 0).value_or(*rank);
  env.local_world_size = number(names.local_size, 1).value_or(*size);
  const char* id = name_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"});
  if (env.local_world_size == env.world_size) {
    env.master_addr = "127.0.0.1";
  }
  // On one host all have been started by the same process.
  env.job =
      id != nullptr ? format("mpi/{}", env_text(id).value_or("")) : format("mpi/{}", getppid());
  return env;
}

std::optional<ClusterEnv> of_slurm() {
  // A batch script has SLURM_PROCID too, and is no rank: only srun starts steps.
  const char* size_name = name_of({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  const auto step = env_text("SLURM_STEP_ID");
  const auto rank = number("SLURM_PROCID", 0);
  if (!step || !rank || size_name == nullptr) {
    return std::nullopt;
  }
  ClusterEnv env{.rank_variable = "SLURM_PROCID",
                 .size_variable = size_name,
                 .rank = *rank,
                 .world_size = number(size_name, 1).value_or(1)};
  env.local_rank = number("SLURM_LOCALID", 0).value_or(*rank);
  env.job = format("slurm/{}/{}", env_text("SLURM_JOB_ID").value_or(""), *step);
  const char* tasks = name_of({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  env.local_world_size = env.world_size;
  if (tasks != nullptr && env.world_size > 1) {
    env.local_world_size =
        tasks_on_node(env_text(tasks).value_or(""), number("SLURM_NODEID", 0).value_or(0), tasks);
  }
  const char* nodes = name_of({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (env.local_world_size == env.world_size) {
    env.master_addr = "127.0.0.1";
  } else if (nodes != nullptr && !env_text("MASTER_ADDR")) {
    env.master_addr = first_host(env_text(nodes).value_or(""), nodes);
  }
  return env;
}

}  // namespace

std::optional<ClusterEnv> cluster_env() {
  for (const auto& names : mpi) {
    if (auto env = of_mpi(names)) {
      return env->world_size > 1 ? env : std::nullopt;
    }
  }
  auto env = of_slurm();
  return env && env->world_size > 1 ? env : std::nullopt;
}

int port_of_job(const std::string& job) {
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : job) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return 20000 + static_cast<int>(hash % 10000);
}

}  // namespace muster::detail
