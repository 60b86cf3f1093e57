// The variables of launchers, and what a rank tells its launcher through the pipe.
//
// Input: lines NUMBER=VALUE, where the number's last digit chooses the variable.

#include <muster/proc/rank_env.h>

#include "src/proc/error_pipe_internal.h"
#include "src/proc/failure_record_internal.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/variables.h"

#include <array>

namespace muster::fuzz {
namespace {

constexpr std::array names{"RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "MUSTER_STORE_FD",
                           "MUSTER_LAUNCHED",
                           "MUSTER_ERROR_FD",
                           "TORCHELASTIC_USE_AGENT_STORE"};

void check_environment() {
  try {
    const auto env = rank_env();
    if (!env) {
      return;
    }
    require(env->rank >= 0 && env->rank < env->world_size, "a rank outside the world");
    require(env->local_rank >= 0 && env->local_rank < env->local_world_size, "a wrong local rank");
    require(env->local_rank <= env->rank && env->local_world_size <= env->world_size,
            "more ranks here than there are");
    require(env->master_port >= 0 && env->master_port <= 65535, "a wrong port");
    require(env->world_size == 1 || (env->master_port > 0 && !env->master_addr.empty()),
            "a world without a store");
    require(env->store_fd == -1 || env->launched, "a socket without a launcher");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage || error.kind() == ErrorKind::rendezvous,
            "an error of another kind");
  }
}

void check_record(std::string_view bytes) {
  const auto record = detail::decode(bytes);
  if (record) {
    require(record->code >= 1 && record->code <= 255, "a wrong code");
    const auto again = detail::decode(detail::encode(*record));
    require(again && again->code == record->code && again->monotonic_ns == record->monotonic_ns,
            "what was written reads otherwise");
  }
}

}  // namespace

void check_input(std::string_view input) {
  set_variables(names, '0', input);
  check_environment();
  require(!detail::inherited_error_pipe(), "a pipe out of nothing");
  check_record(input);
  const auto rank = detail::rank_of_error_file(input);
  require(!rank || *rank >= 0, "a rank below 0");
}

std::vector<std::string> seeds() {
  return {
      "0=1\n1=4\n2=1\n3=2\n4=127.0.0.1\n5=29500\n",
      "0=0\n1=2\n4=::1\n5=1\n6=7\n7=1\n",
      "0=0\n1=1\n9=True\n8=3:12345\n",
      "0= 1\n1=-1\n5=65536\n2=99999999999999999999\n",
      detail::encode({.code = 7, .monotonic_ns = 5, .message = "m", .phase = "fit"}),
      "rank-12.json",
  };
}

}  // namespace muster::fuzz
