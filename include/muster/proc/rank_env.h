#pragma once

#include <optional>
#include <string>

namespace muster {

/// What a launcher told this process about its place in a job.
struct RankEnv {
  int rank = 0;               ///< in [0, world_size)
  int local_rank = 0;         ///< among the ranks of this host
  int world_size = 1;         ///< ranks of the job
  int local_world_size = 1;   ///< ranks of the job on this host
  std::string master_addr{};  ///< host of the store; "" only when world_size is 1
  int master_port = 0;        ///< port of the store; 0 only when world_size is 1
  int store_fd = -1;          ///< listening socket to host the store on; -1: none was passed
  std::string job{};          ///< names the job and its restart, for key prefixes; may be ""
  bool agent_store = false;   ///< the launcher (torchrun) hosts the store itself
  bool launched = false;      ///< by Muster's own launcher
};

/// The environment of Muster's launcher or of torchrun (RANK, WORLD_SIZE, ...), else that of Open
/// MPI, MPICH (PMI_RANK, ...) or a SLURM step (SLURM_PROCID, ...) of two processes or more; nothing
/// for a process on its own. Where RANK and WORLD_SIZE were not set by such a launcher within
/// mpirun or srun, they must agree with theirs.
///
/// Without LOCAL_RANK and LOCAL_WORLD_SIZE all ranks are taken to be on one host. mpirun and srun
/// need no MASTER_PORT: it follows from the job's id; nor MASTER_ADDR on one host, or in SLURM.
/// Error of kind `usage` that names the variables when they contradict each other or are no
/// numbers, `rendezvous` when the socket of MUSTER_STORE_FD is not open any more.
std::optional<RankEnv> rank_env();

}  // namespace muster
