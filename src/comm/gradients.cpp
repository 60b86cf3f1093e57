#include <muster/comm/gradients.h>

#include "src/comm/gradients_internal.h"

#include <muster/base/check.h>
#include <muster/comm/c10d.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace muster {

namespace {

/// Texts of different lengths, without the places that a collective of Group has: ranks with and
/// without a batch stand at different ones.
std::vector<std::string> exchange_texts(Transport& transport, const std::string& mine) {
  std::array<char, sizeof(int64_t)> announced{};
  const auto length = static_cast<int64_t>(mine.size());
  std::memcpy(announced.data(), &length, sizeof length);
  std::vector<int64_t> lengths;
  for (const auto& bytes : transport.exchange({announced.data(), announced.size()})) {
    std::memcpy(&lengths.emplace_back(), bytes.data(), sizeof(int64_t));
  }
  return transport.exchange(mine, lengths);
}

void append_bytes(std::string& bytes, const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  bytes.append(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
}

/// A dense tensor like `like` from the bytes at `offset`, which moves on.
at::Tensor take_bytes(const std::string& bytes, size_t& offset, const at::Tensor& like) {
  at::Tensor tensor = at::empty(like.sizes(), at::TensorOptions{}.dtype(like.dtype()));
  std::copy_n(bytes.data() + offset, tensor.nbytes(), static_cast<char*>(tensor.data_ptr()));
  offset += tensor.nbytes();
  return tensor;
}

/// The same arithmetic as c10d::Reducer: every rank's gradient is multiplied by 1 / W, then they
/// are added, here in rank order.
class TransportReducer final : public GradientReducer {
 public:
  TransportReducer(Group group, NamedTensors parameters, const ReducerOptions& options)
      : group_{std::move(group)}, parameters_{std::move(parameters)}, options_{options} {}

  void broadcast(const std::vector<at::Tensor>& tensors) override {
    std::vector<int64_t> sizes(static_cast<size_t>(group_.size()), 0);
    for (const auto& tensor : tensors) sizes[0] += static_cast<int64_t>(tensor.nbytes());
    std::string mine;
    if (group_.rank() == 0) {
      for (const auto& tensor : tensors) append_bytes(mine, tensor);
    }
    const std::string bytes = std::move(group_.transport().exchange(mine, sizes)[0]);
    size_t offset = 0;
    for (const auto& tensor : tensors) tensor.detach().copy_(take_bytes(bytes, offset, tensor));
  }

  void prepare_for_forward() override {}

  std::span<const double> reduce(const at::Tensor& loss, const at::Tensor& gradient,
                                 std::span<const double> notes) override {
    std::vector<size_t> unused;
    if (loss.defined()) {
      if (!options_.find_unused_parameters) unused = detail::unreached(loss, parameters_);
      loss.backward(gradient);
    }
    const auto ranks = exchange(notes, !unused.empty());
    read_notes(ranks);
    const size_t flags_at = notes.size() * sizeof(double);
    if (std::any_of(ranks.begin(), ranks.end(), [&](auto& rank) { return rank[flags_at] != 0; })) {
      detail::fail_unused(group_.transport(), parameters_, unused);
    }
    add_up(ranks, flags_at + 1);
    return all_notes_;
  }

 private:
  /// From each rank: its notes, whether it has unused parameters, then for each parameter whether
  /// it has a gradient, and the gradient or zeros.
  std::vector<std::string> exchange(std::span<const double> notes, bool has_unused) {
    std::string mine(notes.size() * sizeof(double), '\0');
    std::memcpy(mine.data(), notes.data(), mine.size());
    mine += has_unused ? '\1' : '\0';
    for (const auto& [name, parameter] : parameters_) {
      const at::Tensor& gradient = parameter.grad();
      mine += gradient.defined() ? '\1' : '\0';
      append_bytes(mine, gradient.defined() ? gradient : at::zeros_like(parameter));
    }
    auto ranks = group_.transport().exchange(mine);
    for (const auto& rank : ranks) {
      check(rank.size() == mine.size(), ErrorKind::mismatch,
            "a rank gave {} bytes where the gradients of this one take {}", rank.size(),
            mine.size());
    }
    return ranks;
  }

  void read_notes(const std::vector<std::string>& ranks) {
    all_notes_.resize(ranks.size() * options_.notes);
    for (size_t r = 0; r < ranks.size(); ++r) {
      std::memcpy(all_notes_.data() + r * options_.notes, ranks[r].data(),
                  options_.notes * sizeof(double));
    }
  }

  void add_up(const std::vector<std::string>& ranks, size_t offset) const {
    const double share = 1.0 / static_cast<double>(ranks.size());
    for (const auto& [name, parameter] : parameters_) {
      const size_t at = offset + 1;
      at::Tensor sum;
      bool used = false;
      for (const auto& rank : ranks) {
        used = used || rank[offset] != 0;
        size_t from = at;
        const at::Tensor term = take_bytes(rank, from, parameter).mul_(share);
        sum = sum.defined() ? sum.add_(term) : term;
      }
      offset = at + parameter.nbytes();
      if (!used) continue;
      at::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) gradient = at::zeros_like(parameter);
      gradient.detach().copy_(sum);
    }
  }

  Group group_;
  NamedTensors parameters_;
  ReducerOptions options_;
  std::vector<double> all_notes_{};
};

}  // namespace

std::unordered_set<const torch::autograd::Node*> nodes_behind(const at::Tensor& loss) {
  using torch::autograd::Node;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> waiting;
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) waiting.push_back(node);
  };
  visit(loss.grad_fn().get());
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    for (const auto& edge : node->next_edges()) visit(edge.function.get());
  }
  return seen;
}

namespace detail {

std::vector<size_t> unreached(const at::Tensor& loss, const NamedTensors& parameters) {
  const auto seen = nodes_behind(loss);
  std::vector<size_t> missing;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto accumulator = torch::autograd::impl::grad_accumulator(parameters[i].second);
    if (!seen.contains(accumulator.get())) missing.push_back(i);
  }
  return missing;
}

void fail_unused(Transport& transport, const NamedTensors& parameters,
                 const std::vector<size_t>& unused) {
  std::string mine;
  for (const size_t i : unused) {
    mine += format("{}'{}'", mine.empty() ? "" : ", ", parameters[i].first);
  }
  const auto ranks = exchange_texts(transport, mine);
  std::string all;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].empty()) continue;
    all += format("{}on rank {} {}", all.empty() ? "" : "; ", r, ranks[r]);
  }
  fail(ErrorKind::user,
       "the loss does not depend on these parameters: {}. Use every parameter in every training "
       "step, freeze those that are not trained by requires_grad_(false), or set "
       "find_unused_parameters (--trainer.strategy ddp_find_unused_parameters_true)",
       all);
}

}  // namespace detail

std::unique_ptr<GradientReducer> make_gradient_reducer(Group& group, NamedTensors parameters,
                                                       const ReducerOptions& options) {
  if (has_process_groups(group)) {
    return detail::make_c10d_reducer(group, std::move(parameters), options);
  }
  return std::make_unique<TransportReducer>(group, std::move(parameters), options);
}

}  // namespace muster
