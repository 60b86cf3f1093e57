#pragma once

#include <string>
#include <vector>

namespace muster {

struct LaunchOptions {
  /// How many ranks to start on this host, 1 to 1024.
  int ranks = 1;
  /// Runs this very program (/proc/self/exe) again; argv[0] is then its name only. Otherwise
  /// argv[0] is searched along PATH.
  bool self_exe = false;
  /// Seconds between SIGTERM and SIGKILL for the other ranks after one has failed.
  double grace_s = 3.0;
  /// Seconds between SIGTERM and SIGKILL after the launcher itself was told to stop: time to save.
  double stop_grace_s = 25.0;
  /// Port on 127.0.0.1 where rank 0 hosts the store; 0 takes a free one, which cannot fail.
  int port = 0;
  /// Where ranks write errors/rank-K.json, when the launcher knows it ("" when not).
  std::string run_dir{};
};

/// Starts the ranks as child processes, waits until all of them have ended and returns the exit
/// code of the job. Call it from the main thread of a process that has not touched torch; it starts
/// no thread.
///
/// A rank gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, MUSTER_JOB
/// (a random name of the job), MUSTER_LAUNCHED, MUSTER_ERROR_FD (see fail_rank), MUSTER_PLACE_FD
/// (see report_place), rank 0 also MUSTER_STORE_FD: a listening socket on loopback. Each rank is a
/// session of its own; it is killed when the launcher dies. stdout and stderr are the launcher's;
/// stdin is rank 0's, and empty for the others.
///
/// The first rank to fail ends the job: the others get SIGTERM, then SIGKILL, and stderr gets one
/// block that names the root cause, whose exit code (128 + n after signal n) is returned. SIGINT,
/// SIGTERM or SIGHUP to the launcher stops all ranks and gives 128 + n; a second SIGINT kills them
/// at once. SIGUSR1 is passed on to the ranks, which ignore it unless they say otherwise. A rank
/// that exits with 0 ends nothing, unless it has called report_begin and not report_end.
///
/// Errors: `usage` (options, no program), `rendezvous` (the port is taken), `output` (a rank cannot
/// be started; those already started are gone by then).
int launch(const std::vector<std::string>& argv, const LaunchOptions& options = {});

}  // namespace muster
