#pragma once

#include <optional>
#include <string>

namespace muster::detail {

/// What mpirun or srun told this process about its place in a job.
struct ClusterEnv {
  std::string rank_variable{};  ///< where the rank was read: "SLURM_PROCID"
  std::string size_variable{};
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string job{};          ///< names the job, for key prefixes and a port
  std::string master_addr{};  ///< host of rank 0; "" where they do not say it
};

/// Open MPI's variables, else those of MPICH and its kin (PMI), else those of a SLURM step. Nothing
/// where there are none, or where they tell of one process only, which stands for nothing: a
/// launcher of another kind may run in it. Error of kind `usage` as rank_env.
std::optional<ClusterEnv> cluster_env();

/// A port in 20000 to 29999 that follows from the job's name, so that all ranks choose the same.
int port_of_job(const std::string& job);

}  // namespace muster::detail
