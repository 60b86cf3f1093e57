#pragma once

#include <muster/train/ddp.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

/// A tiny network of plain tensors, its training by Ddp, and the same by one loss over all samples
/// of a step.
namespace muster::test {

struct DdpCase {
  at::ScalarType dtype = at::kDouble;
  int64_t accumulate = 1;
  int64_t ranks = 2;    ///< whose batches make a step
  int64_t batches = 7;  ///< an epoch; the last one is short
  bool rare = false;    ///< a layer that only the batches 0, 3, 6, ... use
  bool find_unused = false;
  int64_t bucket_bytes = 600;  ///< several buckets
};

/// Reproducible numbers in [-1, 1).
inline at::Tensor numbers(const std::vector<int64_t>& shape, int64_t seed, at::ScalarType dtype) {
  at::Tensor out = at::empty(shape, at::kDouble);
  auto* values = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    values[i] = std::remainder(static_cast<double>((i + 1) * (seed + 7)) * 0.7548776662466927, 2.0);
  }
  return out.to(dtype);
}

struct DdpNet {
  explicit DdpNet(const DdpCase& what, int64_t seed = 0) : rare{what.rare} {
    add("a.weight", {16, 8}, seed + 1, what.dtype);
    add("a.bias", {16}, seed + 2, what.dtype);
    add("b.weight", {1, 16}, seed + 3, what.dtype);
    add("b.bias", {1}, seed + 4, what.dtype);
    if (rare) add("rare.weight", {1, 16}, seed + 5, what.dtype);
    buffers.emplace_back("count", at::full({}, seed, at::kLong));
    buffers.emplace_back("mean", numbers({3}, seed, what.dtype));
  }
  void add(const std::string& name, const std::vector<int64_t>& shape, int64_t seed,
           at::ScalarType dtype) {
    at::Tensor values = numbers(shape, seed, dtype) * 0.5;
    parameters.emplace_back(name, values.set_requires_grad(true));
  }
  [[nodiscard]] at::Tensor forward(const at::Tensor& x, bool use_rare) const {
    const auto p = [this](size_t i) { return parameters[i].second; };
    const at::Tensor hidden = at::relu(at::linear(x, p(0), p(1)));
    const at::Tensor y = at::linear(hidden, p(2), p(3));
    return rare && use_rare ? y + at::linear(hidden, p(4)) : y;
  }
  /// SGD with a rate of 0.05.
  void step() {
    for (auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      parameter.detach().sub_(parameter.grad(), 0.05);
      parameter.mutable_grad().reset();
    }
  }
  [[nodiscard]] at::Tensor flat() const { return flatten(false); }
  [[nodiscard]] at::Tensor flat_gradients() const { return flatten(true); }
  [[nodiscard]] at::Tensor flatten(bool gradients) const {
    std::vector<at::Tensor> parts;
    for (const auto& [name, parameter] : parameters) {
      const at::Tensor& gradient = parameter.grad();
      if (gradients && !gradient.defined()) continue;
      parts.push_back((gradients ? gradient : parameter.detach()).flatten().to(at::kDouble));
    }
    return at::cat(parts);
  }

  bool rare;
  NamedTensors parameters{};
  NamedTensors buffers{};
};

/// The samples of an epoch in batches of 4, the last one of 3.
struct DdpData {
  explicit DdpData(const DdpCase& what)
      : samples{what.batches * 4 - 1},
        x{numbers({samples, 8}, 11, what.dtype)},
        y{numbers({samples, 1}, 12, what.dtype)} {}
  [[nodiscard]] int64_t size(int64_t batch) const {
    return std::min<int64_t>(4, samples - batch * 4);
  }
  [[nodiscard]] at::Tensor loss(const DdpNet& net, int64_t batch) const {
    const auto part = [&](const at::Tensor& all) {
      return all.slice(0, batch * 4, batch * 4 + size(batch));
    };
    return at::mse_loss(net.forward(part(x), batch % 3 == 0), part(y));
  }

  int64_t samples;
  at::Tensor x;
  at::Tensor y;
};

inline constexpr int64_t ddp_steps = 20;

/// The parameters after `ddp_steps` steps, each on one loss: the mean over all its samples.
inline at::Tensor train_alone(const DdpCase& what) {
  DdpNet net{what};
  const DdpData data{what};
  const int64_t per_step = what.ranks * what.accumulate;
  for (int64_t step = 0, first = 0; step < ddp_steps; ++step) {
    const int64_t end = std::min(first + per_step, what.batches);
    int64_t samples = 0;
    at::Tensor sum = at::zeros({}, what.dtype);
    for (int64_t batch = first; batch < end; ++batch) {
      sum = sum + data.loss(net, batch) * static_cast<double>(data.size(batch));
      samples += data.size(batch);
    }
    (sum / static_cast<double>(samples)).backward();
    net.step();
    first = end == what.batches ? 0 : end;
  }
  return net.flat();
}

struct DdpResult {
  at::Tensor parameters{};
  /// One number of each step's gradients that differs where a bit does, nearly surely.
  std::vector<double> gradients{};
  std::vector<AgreedFlags> agreed{};
  int64_t without_batch = 0;  ///< steps whose last micro-batch this rank did not have
};

/// One step of batches first..end: micro-batch m is the batches first + m W .. of the W ranks.
inline AgreedFlags ddp_step(Ddp& ddp, const DdpNet& net, const DdpData& data, const Group& group,
                            int64_t first, int64_t end, StepFlags flags) {
  const int64_t ranks = group.size();
  int64_t step_samples = 0;
  for (int64_t batch = first; batch < end; ++batch) step_samples += data.size(batch);
  AgreedFlags agreed;
  for (int64_t micro = first; micro < end; micro += ranks) {
    const bool last = micro + ranks >= end;
    const int64_t batch = micro + group.rank();
    if (last) ddp.prepare_for_forward();
    if (batch >= end) {
      if (last) agreed = ddp.backward_without_batch(step_samples, flags);
      continue;
    }
    const at::Tensor loss = data.loss(net, batch);
    flags.samples += data.size(batch);
    flags.loss_sum += loss.item<double>() * static_cast<double>(data.size(batch));
    agreed = ddp.backward(loss, data.size(batch), step_samples, last, flags);
  }
  return agreed;
}

/// Trains on the group; its ranks start from different parameters, of which rank 0's count. At step
/// 7 the last rank asks to stop, at step 9 rank 0 has a loss that is not finite.
inline DdpResult train_by_ddp(Group& group, const DdpCase& what) {
  DdpNet net{what, group.rank()};
  const DdpData data{what};
  Ddp ddp{group,
          net.parameters,
          net.buffers,
          {.bucket_bytes = what.bucket_bytes,
           .first_bucket_bytes = what.bucket_bytes,
           .find_unused_parameters = what.find_unused}};
  const int64_t per_step = what.ranks * what.accumulate;
  DdpResult result;
  for (int64_t step = 0, first = 0; step < ddp_steps; ++step) {
    const int64_t end = std::min(first + per_step, what.batches);
    const StepFlags flags{.stop = step == 7 && group.rank() == group.size() - 1,
                          .non_finite = step == 9 && group.rank() == 0};
    result.agreed.push_back(ddp_step(ddp, net, data, group, first, end, flags));
    if ((end - first) % group.size() != 0 && group.rank() >= (end - first) % group.size()) {
      ++result.without_batch;
    }
    const at::Tensor gradients = net.flat_gradients();
    result.gradients.push_back(
        (gradients * numbers({gradients.numel()}, 99, at::kDouble)).sum().item<double>());
    net.step();
    first = end == what.batches ? 0 : end;
  }
  result.parameters = net.flat();
  return result;
}

}  // namespace muster::test
