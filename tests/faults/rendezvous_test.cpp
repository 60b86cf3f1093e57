// Rows B of docs/faults.md: ranks that do not find each other, and environments that contradict
// themselves.

#include "faults/job.h"

#include "support/paths.h"
#include "support/texts.h"

#include "src/proc/spawn_internal.h"

#include <muster/base/format.h>

#include <unistd.h>

namespace muster::test {
namespace {

/// Ranks of c10d's own program, each a shell word "RANK SIZE [NAME=VALUE...]", at one port, one
/// started `apart_s` after the other; they wait `timeout_s`. The script ends with the code of the
/// last.
std::string ranks_at(int port, const Arguments& ranks, int timeout_s = 3, double apart_s = 0.5) {
  std::string script = format(
      "rank() {{ r=$1; n=$2; shift 2; env MASTER_ADDR=127.0.0.1 MASTER_PORT={} RANK=$r "
      "WORLD_SIZE=$n LOCAL_WORLD_SIZE=$n RENDEZVOUS_TIMEOUT={} \"$@\" {} listeners >&2; }}\n",
      port, timeout_s, (bin_dir() / "test_dist_c10d_program").string());
  for (size_t i = 0; i < ranks.size(); ++i) {
    script +=
        format("rank {}{}\n", ranks[i], i + 1 < ranks.size() ? format(" & sleep {}", apart_s) : "");
  }
  return script + "code=$?; wait; exit $code";
}

int free_port() { return detail::port_of(detail::listen_on_loopback(0)); }

TEST_F(Faults, B15_AnExplicitPortThatIsTakenIsNamedWithItsHolder) {
  const auto taken = detail::listen_on_loopback(0);
  const int port = detail::port_of(taken);
  const std::string launch = (bin_dir() / "muster").string() + " launch -n 2 --master_port ";
  expect({.script = launch + std::to_string(port) + " true"},
         {.exit_code = 69,
          .within_s = 1,
          .says = format("127.0.0.1 port {}: Address already in use; it is process {} ", port,
                         getpid())});
}

TEST_F(Faults, B15_PortsThatTheLauncherChoosesAreNeverTaken) {
  const std::string launch = (bin_dir() / "muster").string() + " launch -n 2 true";
  expect({.script = format("for i in $(seq 20); do {} & pid=$!; {} || exit 9; wait $pid || exit 9; "
                           "done",
                           launch, launch)},
         {.exit_code = 0, .within_s = 20});
}

TEST_F(Faults, B16_RanksThatNeverStartAreListed) {
  expect({.script = ranks_at(free_port(), {"1 4", "0 4"})},
         {.exit_code = 69,
          .within_s = 3 + 1 + 0.5 + 1,  // The second starts later, and torch takes its time.
          .says = "rank 0 of 4 did not find the others at 127.0.0.1 port [0-9]+ within 3 s: no "
                  "rank 2, 3 has come"});
}

TEST_F(Faults, B18_AHostThatRefusesIsNamedWithItsPortAndTheReason) {
  const int port = free_port();
  expect({.script = ranks_at(port, {"1 2"})},
         {.exit_code = 69,
          .within_s = 3 + 1 + 1,
          .says = format("127.0.0.1 port {} within 3 s: Connection refused", port)});
}

TEST_F(Faults, B20_AStrangerIsRefusedAtOnceAndTheJobRunsOn) {
  const int port = free_port();
  const std::string of_another = "TORCHELASTIC_RUN_ID=another";
  const Ended ended = expect({.script = ranks_at(port, {"0 2", "1 2 " + of_another, "1 2"}, 20, 2)},
                             {.exit_code = 0, .within_s = 15, .says = "that of another job"});
  EXPECT_FALSE(has(ended.err, "did not find"));
}

TEST_F(Faults, B20_ASecondRankOfTheSameNumberIsRefused) {
  const Ended ended =
      expect({.script = ranks_at(free_port(), {"0 3", "1 3", "1 3", "2 3"}, 20, 2)},
             {.exit_code = 0, .within_s = 8, .says = "another process is rank 1 of the job"});
  EXPECT_FALSE(has(ended.err, "did not find"));
}

TEST_F(Faults, B23_ContradictoryVariablesAreNamedWithTheRule) {
  struct Case {
    Arguments environment;
    std::string says;
  };
  const std::vector<Case> cases{
      {{"RANK=2", "WORLD_SIZE=2"}, "RANK=2 is not below WORLD_SIZE=2"},
      {{"RANK=abc", "WORLD_SIZE=2"}, "RANK must be a whole number[^\n]*'abc'"},
      {{"LOCAL_RANK=0"}, "LOCAL_RANK is set, but neither RANK nor WORLD_SIZE is"},
      {{"RANK=1", "WORLD_SIZE=2", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0"},
       "RANK=1 contradicts SLURM_PROCID=0; RANK and WORLD_SIZE count where"},
      {{"RANK=1", "WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3"},
       "WORLD_SIZE=2 contradicts OMPI_COMM_WORLD_SIZE=3"},
      {{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0",
        "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_NODELIST=node[03", "SLURM_LOCALID=1"},
       "SLURM_NODELIST='node.03' is no list of nodes"},
  };
  for (const auto& one : cases) {
    expect({.ranks = 1, .environment = one.environment},
           {.exit_code = 2, .within_s = 1, .says = one.says});
  }
}

TEST_F(Faults, B23_RanksOfMpirunFindEachOther) {
  const std::string rank =
      "env PMIX_NAMESPACE=job-$$ OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
      "OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_LOCAL_RANK=$r \"$@\"";
  expect({.ranks = 1,
          .options = {"--trainer.max_epochs", "1"},
          .script = format("r=1; {} & r=0; {}; code=$?; wait; exit $code", rank, rank)},
         {.exit_code = 0, .within_s = 20});
  EXPECT_FALSE(last_model().empty());
}

}  // namespace
}  // namespace muster::test
