// A rank for the tests of Ddp on processes: test_dist_ddp_program SCENARIO, with RANK, WORLD_SIZE
// and MASTER_PORT as torchrun sets them.
#include "../train/ddp_net.h"

#include <muster/base/check.h>
#include <muster/comm/c10d.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

namespace muster::test {
namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  check(text != nullptr, "{} is not set", name);
  return std::atoi(text);
}

C10dOptions options_of_environment() {
  C10dOptions options;
  options.rank = number("RANK");
  options.size = number("WORLD_SIZE");
  options.master_port = number("MASTER_PORT");
  if (options.rank == 0) options.store_fd = number("STORE_FD");
  return options;
}

/// The largest difference to one process, in units of the limit: below 1 is right.
double compare(const DdpResult& result, const DdpCase& what) {
  const at::Tensor expected = train_alone(what);
  const bool is_double = what.dtype == at::kDouble;
  const at::Tensor scale = expected.abs().clamp_min(is_double ? 1 : 0.01);
  const at::Tensor difference = (result.parameters - expected).abs() / scale;
  return difference.max().item<double>() / (is_double ? 1e-12 : 1e-4);
}

int run_case(Group& group, const DdpCase& what) {
  const DdpResult result = train_by_ddp(group, what);
  const double difference = compare(result, what);
  std::printf("%s accumulate %d unused %d bucket %d: difference %g of the limit\n",
              what.dtype == at::kDouble ? "float64" : "float32", static_cast<int>(what.accumulate),
              what.find_unused ? 1 : 0, static_cast<int>(what.bucket_bytes), difference);
  for (size_t step = 0; step < result.gradients.size(); ++step) {
    const AgreedFlags& agreed = result.agreed[step];
    std::printf("%a %d %a%s%s%d\n", result.gradients[step], static_cast<int>(agreed.samples),
                agreed.loss_sum, agreed.stop ? " stop" : "", agreed.non_finite ? " rank " : " ",
                agreed.non_finite_rank);
    if (agreed.stop != (step == 7) || agreed.non_finite_rank != (step == 9 ? 0 : -1)) return 1;
  }
  return difference < 1 ? 0 : 1;
}

/// Both types with several buckets and with one; the first case once more, which must give the
/// same.
int run_train(Group& group) {
  int wrong = 0;
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    for (const int64_t accumulate : {1, 2}) {
      DdpCase what{.dtype = dtype,
                   .accumulate = accumulate,
                   .ranks = group.size(),
                   .bucket_bytes = dtype == at::kDouble ? 200 : 1 << 20};
      wrong += run_case(group, what);
      what.rare = true;
      what.find_unused = true;
      wrong += run_case(group, what);
    }
  }
  const DdpCase what{.ranks = group.size(), .bucket_bytes = 200};
  const DdpResult once = train_by_ddp(group, what);
  wrong += once.gradients == train_by_ddp(group, what).gradients ? 0 : 1;
  group.finish();
  return wrong;
}

/// Rank 0's values reach all, in types that Gloo may not know; a second Ddp on the same group.
int run_values(Group& group) {
  NamedTensors parameters{{"w", at::full({2}, group.rank() + 1.0).set_requires_grad(true)},
                          {"half", at::full({2}, group.rank(), at::kBFloat16)}};
  NamedTensors buffers{{"bool", at::full({3}, group.rank() == 0, at::kBool)},
                       {"long", at::full({}, group.rank(), at::kLong)},
                       {"empty", at::zeros({0})}};
  parameters[1].second.set_requires_grad(true);
  const Ddp first{group, parameters, buffers};
  buffers[1].second.fill_(group.rank() + 7);
  Ddp second{group, parameters, buffers};
  buffers[0].second.fill_(group.rank() == 0);
  second.broadcast_buffers();
  const bool alike = parameters[0].second.detach().equal(at::full({2}, 1.0)) &&
                     buffers[0].second.equal(at::full({3}, true, at::kBool)) &&
                     buffers[1].second.item<int64_t>() == 7;
  const at::Tensor loss =
      (parameters[0].second * parameters[1].second.to(at::kFloat) * (group.rank() + 1)).sum();
  second.backward(loss, 1, group.size(), true, {.samples = 1});
  const double mean = (group.size() + 1) / 2.0;
  const bool right = parameters[1].second.grad().equal(at::full({2}, mean, at::kBFloat16));
  group.finish();
  return alike && right ? 0 : 1;
}

int run_differs(Group& group) {
  DdpNet net{DdpCase{}};
  if (group.rank() == 1) net.parameters[2].second = at::zeros({1, 4}).set_requires_grad(true);
  const Ddp ddp{group, net.parameters, net.buffers};
  return 0;
}

int run_unused(Group& group) {
  train_by_ddp(group, DdpCase{.ranks = group.size(), .rare = true});
  return 0;
}

/// A rank that dies between its forward and its backward.
int run_killed(Group& group) {
  const DdpCase what{.ranks = group.size()};
  DdpNet net{what};
  const DdpData data{what};
  Ddp ddp{group, net.parameters, net.buffers};
  for (int step = 0; step < 3; ++step) {
    if (group.rank() == 1 && step == 2) kill(getpid(), SIGKILL);
    ddp_step(ddp, net, data, group, 0, group.size(), {});
    net.step();
  }
  return 0;
}

int run(const std::string& scenario) {
  const std::map<std::string, std::function<int(Group&)>> scenarios{
      {"train", run_train},   {"values", run_values}, {"differs", run_differs},
      {"unused", run_unused}, {"killed", run_killed},
  };
  Group group = make_c10d_group(options_of_environment());
  return scenarios.at(scenario)(group);
}

}  // namespace
}  // namespace muster::test

int main(int argc, char** argv) {
  int code = 3;
  try {
    code = muster::test::run(argc == 2 ? argv[1] : "");
  } catch (const muster::Error& error) {
    std::printf("error: %s\n", error.what());
    code = error.exit_code();
  }
  std::fflush(stdout);
  // Gloo's threads may live on after a lost peer.
  _exit(code);
}
