#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/proc/rank_env.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include "src/proc/node_list_internal.h"
#include "support/texts.h"

namespace {

using muster::detail::first_host;
using muster::detail::tasks_on_node;
using muster::test::has;

using Variables = std::map<std::string, std::string>;

/// Nothing of the launcher that may run these tests is left, nor anything for later tests.
void clear_variables() {
  const std::string prefixes[] = {"RANK",   "WORLD_SIZE", "LOCAL_", "MASTER_", "MUSTER_",
                                  "SLURM_", "OMPI_",      "PMI",    "MPI_",    "TORCHELASTIC_"};
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string{*entry}.substr(0, std::string{*entry}.find('='));
    for (const auto& prefix : prefixes) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
  }
  for (const auto& name : names) unsetenv(name.c_str());
}

std::optional<muster::RankEnv> rank_env_of(const Variables& variables) {
  struct Cleared {
    Cleared() { clear_variables(); }
    Cleared(const Cleared&) = delete;
    Cleared& operator=(const Cleared&) = delete;
    ~Cleared() { clear_variables(); }
  } const cleared;
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return muster::rank_env();
}

std::string error_of(const Variables& variables) {
  try {
    rank_env_of(variables);
  } catch (const muster::Error& error) {
    EXPECT_EQ(error.kind(), muster::ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) variables[name] = value;
  return variables;
}

const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                         {"PMIX_NAMESPACE", "prterun-x-77@1"}};

const Variables slurm{{"SLURM_PROCID", "5"},
                      {"SLURM_STEP_NUM_TASKS", "7"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_JOB_ID", "4711"},
                      {"SLURM_NODELIST", "node[03-05,7]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};

TEST(ClusterEnv, OfOpenMpiOnOneHostNeedsNothingElse) {
  const auto env = rank_env_of(open_mpi);
  ASSERT_TRUE(env);
  EXPECT_EQ(env->rank, 1);
  EXPECT_EQ(env->world_size, 3);
  EXPECT_EQ(env->local_rank, 1);
  EXPECT_EQ(env->local_world_size, 3);
  EXPECT_EQ(env->master_addr, "127.0.0.1");
  EXPECT_GE(env->master_port, 20000);
  EXPECT_LT(env->master_port, 30000);
  EXPECT_EQ(env->job, "mpi/prterun-x-77@1");
  EXPECT_FALSE(env->launched);
  EXPECT_EQ(rank_env_of(open_mpi)->master_port, env->master_port);
  EXPECT_EQ(rank_env_of(with(open_mpi, {{"MASTER_PORT", "1234"}}))->master_port, 1234);
}

TEST(ClusterEnv, OfOpenMpiOnSeveralHostsAsksForTheHostOfRankZero) {
  const auto spread = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_TRUE(has(error_of(spread), "MASTER_ADDR"));
  EXPECT_EQ(rank_env_of(with(spread, {{"MASTER_ADDR", "n1"}}))->master_addr, "n1");
}

TEST(ClusterEnv, OfPmiIsRead) {
  const auto env = rank_env_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}});
  ASSERT_TRUE(env);
  EXPECT_EQ(env->rank, 2);
  EXPECT_EQ(env->local_world_size, 4);
}

TEST(ClusterEnv, OfASlurmStepHasItsFirstHostAndTheTasksOfThisNode) {
  const auto env = rank_env_of(slurm);
  ASSERT_TRUE(env);
  EXPECT_EQ(env->rank, 5);
  EXPECT_EQ(env->world_size, 7);
  EXPECT_EQ(env->local_rank, 1);
  EXPECT_EQ(env->local_world_size, 2);
  EXPECT_EQ(env->master_addr, "node03");
  EXPECT_EQ(env->job, "slurm/4711/0");
}

TEST(ClusterEnv, OfABatchScriptOrOfOneProcessIsNothing) {
  Variables batch = slurm;
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(rank_env_of(batch));
  EXPECT_FALSE(rank_env_of(with(slurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})));
  EXPECT_FALSE(rank_env_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
}

TEST(ClusterEnv, GivesWayToALauncherThatItHasStarted) {
  const Variables torchrun{{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"LOCAL_RANK", "0"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "x"},
                           {"MASTER_PORT", "1"},
                           {"TORCHELASTIC_RUN_ID", "r"}};
  EXPECT_EQ(rank_env_of(with(slurm, torchrun))->world_size, 2);
}

TEST(ClusterEnv, NamesBothVariablesOfAContradictionAndTheRule) {
  const Variables master{{"MASTER_ADDR", "x"}, {"MASTER_PORT", "1"}};
  const auto rank = error_of(with(with(slurm, master), {{"RANK", "1"}, {"WORLD_SIZE", "7"}}));
  EXPECT_TRUE(has(rank, "RANK=1 contradicts SLURM_PROCID=5"));
  EXPECT_TRUE(has(rank, "unset them"));
  const auto size = error_of(with(with(open_mpi, master), {{"RANK", "1"}, {"WORLD_SIZE", "4"}}));
  EXPECT_TRUE(has(size, "WORLD_SIZE=4 contradicts OMPI_COMM_WORLD_SIZE=3"));
  EXPECT_TRUE(
      has(error_of(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "3"}})), "OMPI_COMM_WORLD_RANK=3"));
  EXPECT_TRUE(has(error_of(with(slurm, {{"SLURM_PROCID", "abc"}})), "SLURM_PROCID"));
}

TEST(NodeList, GivesItsFirstHost) {
  EXPECT_EQ(first_host("node[03-05,7]", "V"), "node03");
  EXPECT_EQ(first_host("a,b", "V"), "a");
  EXPECT_EQ(first_host("rack[2-4]n[10-11].site,x", "V"), "rack2n10.site");
  EXPECT_EQ(first_host("tux1", "V"), "tux1");
  for (const auto* list : {"", ",", "node[", "node[]", "node[-3]", "a b", "$(x)", "-f", "n]"}) {
    EXPECT_THROW(first_host(list, "V"), muster::Error) << list;
  }
}

TEST(NodeList, SaysHowManyTasksANodeHas) {
  EXPECT_EQ(tasks_on_node("2(x3),1", 0, "V"), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2, "V"), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3, "V"), 1);
  EXPECT_EQ(tasks_on_node("4", 0, "V"), 4);
  for (const auto* list : {"", "x", "2(x", "2(x3", "0", "2(x0)", "2;1", "99999999999"}) {
    EXPECT_THROW(tasks_on_node(list, 1, "V"), muster::Error) << list;
  }
  EXPECT_THROW(tasks_on_node("2(x3),1", 4, "V"), muster::Error);
}

}  // namespace
