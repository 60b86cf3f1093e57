#include <gtest/gtest.h>
#include <muster/base/error.h>
#include <muster/proc/rank_env.h>

#include <cstdlib>
#include <map>
#include <string>

#include "support/texts.h"

namespace {

using muster::test::has;

testing::AssertionResult has_both(const std::string& text, const std::string& a,
                                  const std::string& b) {
  const auto first = has(text, a);
  return first ? has(text, b) : first;
}

using Variables = std::map<std::string, std::string>;

// Nothing of the launcher that may run these tests is left in the environment.
std::optional<muster::RankEnv> rank_env_of(const Variables& variables) {
  for (const char* name :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "MUSTER_JOB", "MUSTER_LAUNCHED", "MUSTER_STORE_FD", "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_USE_AGENT_STORE"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  return muster::rank_env();
}

std::string error_of(const Variables& variables,
                     muster::ErrorKind kind = muster::ErrorKind::usage) {
  try {
    rank_env_of(variables);
  } catch (const muster::Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "no error";
}

const Variables torchrun{{"RANK", "3"},
                         {"LOCAL_RANK", "1"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "node7"},
                         {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "run-5"},
                         {"TORCHELASTIC_RESTART_COUNT", "2"},
                         {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

Variables with(Variables variables, const Variables& changes) {
  for (const auto& [name, value] : changes) {
    variables[name] = value;
  }
  return variables;
}

TEST(RankEnv, IsNothingForAProcessOnItsOwn) { EXPECT_FALSE(rank_env_of({})); }

TEST(RankEnv, IsReadFromTorchrun) {
  const auto env = rank_env_of(torchrun);
  ASSERT_TRUE(env);
  EXPECT_EQ(env->rank, 3);
  EXPECT_EQ(env->local_rank, 1);
  EXPECT_EQ(env->world_size, 4);
  EXPECT_EQ(env->local_world_size, 2);
  EXPECT_EQ(env->master_addr, "node7");
  EXPECT_EQ(env->master_port, 29500);
  EXPECT_EQ(env->job, "run-5/2");
  EXPECT_EQ(env->store_fd, -1);
  EXPECT_TRUE(env->agent_store);
  EXPECT_FALSE(env->launched);
  EXPECT_FALSE(
      rank_env_of(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))->agent_store);
}

TEST(RankEnv, TakesOneHostWhereNothingIsSaidOfIt) {
  const auto env = rank_env_of(
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1234"}});
  ASSERT_TRUE(env);
  EXPECT_EQ(env->local_rank, 1);
  EXPECT_EQ(env->local_world_size, 2);
}

TEST(RankEnv, OfOneRankNeedsNoMaster) {
  const auto env = rank_env_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  ASSERT_TRUE(env);
  EXPECT_EQ(env->master_port, 0);
}

TEST(RankEnv, NamesBothOfTwoVariablesThatContradictEachOther) {
  EXPECT_TRUE(has_both(error_of(with(torchrun, {{"RANK", "4"}})), "RANK=4", "WORLD_SIZE=4"));
  EXPECT_TRUE(has_both(error_of(with(torchrun, {{"LOCAL_RANK", "2"}})), "LOCAL_RANK=2",
                       "LOCAL_WORLD_SIZE=2"));
  EXPECT_TRUE(has_both(error_of(with(torchrun, {{"RANK", "0"}})), "LOCAL_RANK=1", "RANK=0"));
  EXPECT_TRUE(has_both(error_of(with(torchrun, {{"LOCAL_WORLD_SIZE", "5"}})), "LOCAL_WORLD_SIZE=5",
                       "WORLD_SIZE=4"));
  EXPECT_TRUE(has_both(error_of({{"RANK", "0"}}), "RANK is set", "WORLD_SIZE"));
  EXPECT_TRUE(has_both(error_of({{"WORLD_SIZE", "2"}}), "WORLD_SIZE is set", "RANK is not"));
  EXPECT_TRUE(has_both(error_of({{"LOCAL_RANK", "0"}}), "LOCAL_RANK", "WORLD_SIZE"));
  EXPECT_TRUE(has_both(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "x"}}),
                       "WORLD_SIZE=2", "MASTER_PORT is unset"));
}

TEST(RankEnv, NamesAVariableThatIsNoNumberInRange) {
  EXPECT_TRUE(has_both(error_of(with(torchrun, {{"RANK", "abc"}})), "RANK", "abc"));
  EXPECT_TRUE(has(error_of(with(torchrun, {{"RANK", "-1"}})), "-1"));
  EXPECT_TRUE(has(error_of(with(torchrun, {{"WORLD_SIZE", "0"}})), "WORLD_SIZE"));
  EXPECT_TRUE(has(error_of(with(torchrun, {{"WORLD_SIZE", "99999999999"}})), "range"));
  EXPECT_TRUE(has(error_of(with(torchrun, {{"MASTER_PORT", "65536"}})), "MASTER_PORT"));
}

TEST(RankEnv, RefusesAStoreSocketThatIsNone) {
  EXPECT_TRUE(has(error_of(with(torchrun, {{"RANK", "0"},
                                           {"LOCAL_RANK", "0"},
                                           {"MUSTER_LAUNCHED", "1"},
                                           {"MUSTER_STORE_FD", "1"}}),
                           muster::ErrorKind::rendezvous),
                  "MUSTER_STORE_FD=1"));
}

}  // namespace
