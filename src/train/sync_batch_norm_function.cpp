#include "sync_batch_norm_function_internal.h"

#include <muster/base/check.h>
#include <muster/comm/gather.h>
#include <muster/comm/gradients.h>
#include <muster/value/tensor.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace muster {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What a rank gives in forward.
struct ForwardPart {
  int64_t rank = 0;
  std::string layer{};
  bool has_backward = false;
  int64_t count = 0;
  at::Tensor mean{};
  at::Tensor squares{};
};

/// What a rank gives in backward; one without a batch has no layer.
struct BackwardPart {
  bool has_batch = false;
  std::string layer{};
  at::Tensor sums{};  ///< [2, C]: of the outputs' gradients, and of these times (x - mean)
};

/// What backward needs beside tensors.
struct Call final : torch::CustomClassHolder {
  Call(Group its_group, std::string its_layer, int64_t its_count)
      : group{std::move(its_group)}, layer{std::move(its_layer)}, count{its_count} {}

  Group group;
  std::string layer;
  int64_t count;  ///< values of a channel on all ranks
  std::thread::id thread = std::this_thread::get_id();
};

/// All dimensions but that of the channels.
std::vector<int64_t> reduced_dims(const at::Tensor& x) {
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

/// [C] beside [N, C, ...].
at::Tensor beside(const at::Tensor& channels, const at::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  return channels.view(shape);
}

ForwardPart statistics_of(const at::Tensor& x) {
  const at::Tensor values = x.detach().to(at::kDouble);
  const auto dims = reduced_dims(x);
  ForwardPart part{.count = x.numel() / x.size(1)};
  if (part.count == 0) {
    part.mean = part.squares = at::zeros({x.size(1)}, at::kDouble);
    return part;
  }
  part.mean = values.mean(dims);
  part.squares = (values - beside(part.mean, x)).square_().sum(dims);
  return part;
}

std::string describe(const ForwardPart& part) {
  return format("'{}' of {} channels{}", part.layer, part.mean.numel(),
                part.has_backward ? "" : " without gradients");
}

void check_same_layer(const std::vector<ForwardPart>& parts) {
  const ForwardPart& first = parts.front();
  for (const auto& part : parts) {
    check(part.layer == first.layer && part.mean.sizes() == first.mean.sizes() &&
              part.has_backward == first.has_backward,
          ErrorKind::mismatch,
          "the ranks disagree on the next SyncBatchNorm: rank {} runs {}, rank {} runs {}. Every "
          "rank that has a batch must run the same layers in the same order",
          first.rank, describe(first), part.rank, describe(part));
  }
}

/// In rank order, so that all ranks have the same bits.
ChannelStatistics merged(const std::vector<ForwardPart>& parts) {
  ChannelStatistics all{.mean = at::zeros_like(parts.front().mean),
                        .squares = at::zeros_like(parts.front().mean),
                        .first_rank = parts.front().rank};
  for (const auto& part : parts) {
    if (part.count == 0) continue;
    const int64_t count = all.count + part.count;
    const double share = static_cast<double>(part.count) / static_cast<double>(count);
    const at::Tensor difference = part.mean - all.mean;
    all.mean = all.mean + difference * share;
    all.squares =
        all.squares + part.squares + difference.square() * (share * static_cast<double>(all.count));
    all.count = count;
  }
  return all;
}

/// From one line, whether a rank has a batch or not: the line is part of a collective's header.
std::vector<BackwardPart> gather_backward(Group& group, const BackwardPart& mine) {
  return gather(group, mine);
}

/// [2, C], in rank order.
at::Tensor gathered_sums(Call& call, const at::Tensor& mine) {
  at::Tensor all = at::zeros_like(mine);
  for (const auto& part : gather_backward(call.group, {true, call.layer, mine})) {
    if (!part.has_batch) continue;
    check(part.layer == call.layer && part.sums.sizes() == mine.sizes(), ErrorKind::mismatch,
          "the ranks disagree on the next SyncBatchNorm in backward: this rank, {}, is at '{}', "
          "another one at '{}'. Every rank that has a batch must run the same layers in the same "
          "order",
          call.group.rank(), call.layer, part.layer);
    all = all + part.sums;
  }
  return all;
}

at::Tensor in_float(const at::Tensor& parameter) {
  const bool is_short = parameter.defined() && (parameter.scalar_type() == at::kHalf ||
                                                parameter.scalar_type() == at::kBFloat16);
  return is_short ? parameter.to(at::kFloat) : parameter;
}

/// The gradient of `like`, or nothing where there is no such input.
at::Tensor gradient_of(const at::Tensor& like, const at::Tensor& sums) {
  return like.defined() ? sums.to(like.scalar_type()) : at::Tensor{};
}

class SyncBatchNormFunction : public torch::autograd::Function<SyncBatchNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const at::Tensor& mean,
                            const at::Tensor& variance, double eps,
                            const c10::intrusive_ptr<Call>& call) {
    context->save_for_backward({x, weight, bias, mean, (variance + eps).rsqrt()});
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    // As in evaluation, by given statistics: the kernel that torch's own layers run.
    const auto type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return std::get<0>(at::native_batch_norm(x, in_float(weight), in_float(bias), mean.to(type),
                                             variance.to(type), false, 0.0, eps));
  }

  /// With dy the gradient of y = (x - mean) * inv * weight + bias, and means over all ranks'
  /// values: dx = inv * weight * (dy - mean(dy) - (x - mean) * inv^2 * mean(dy * (x - mean))).
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    check(
        std::this_thread::get_id() == call->thread,
        "SyncBatchNorm '{}' runs backward in another thread than forward, as tensors on a GPU do; "
        "it is for the CPU so far: use GroupNorm, or torch's own BatchNorm",
        call->layer);
    check(!c10::GradMode::is_enabled(),
          "SyncBatchNorm '{}' has no second derivatives: create_graph is not for it", call->layer);
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& inverse = saved[4];

    const auto dims = reduced_dims(x);
    const at::Tensor centered = x.to(at::kDouble) - beside(saved[3], x);
    const at::Tensor dy = gradients[0].to(at::kDouble);
    const at::Tensor mine = at::stack({dy.sum(dims), (dy * centered).sum(dims)});
    const at::Tensor means = gathered_sums(*call, mine) / static_cast<double>(call->count);

    const at::Tensor slope = weight.defined() ? inverse * weight.to(at::kDouble) : inverse;
    at::Tensor dx;
    if (context->needs_input_grad(0)) {
      dx = dy - beside(means[0], x);
      dx.sub_(centered * beside(means[1] * inverse.square(), x));
      dx = dx.mul_(beside(slope, x)).to(x.scalar_type());
    }
    return {dx, gradient_of(weight, mine[1] * inverse), gradient_of(saved[2], mine[0]), {}, {}, {},
            {}};
  }
};

using SyncBatchNormNode = torch::autograd::CppNode<SyncBatchNormFunction>;

}  // namespace

NormalizedBatch synced_batch_norm(Group& group, const std::string& layer, const at::Tensor& x,
                                  const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check(x.is_cpu(),
        "SyncBatchNorm '{}' is for tensors on the CPU so far, and got one on {}: use GroupNorm, or "
        "torch's own BatchNorm",
        layer, x.device().str());
  const auto requires_grad = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  ForwardPart mine = statistics_of(x);
  mine.rank = group.rank();
  mine.layer = layer;
  mine.has_backward = c10::GradMode::is_enabled() &&
                      (requires_grad(x) || requires_grad(weight) || requires_grad(bias));
  const auto parts = gather(group, mine);
  check_same_layer(parts);

  NormalizedBatch out{.statistics = merged(parts), .has_backward = mine.has_backward};
  const ChannelStatistics& all = out.statistics;
  check(all.count > 1, ErrorKind::user,
        "SyncBatchNorm '{}' needs more than one value a channel to have a variance; the batches of "
        "all ranks together gave {} (shape {} on rank {})",
        layer, all.count, shape_text(x.sizes()), group.rank());
  out.output = SyncBatchNormFunction::apply(x, weight, bias, all.mean,
                                            all.squares / static_cast<double>(all.count), eps,
                                            c10::make_intrusive<Call>(group, layer, all.count));
  return out;
}

int64_t backward_gathers(const at::Tensor& loss) {
  const auto nodes = nodes_behind(loss);
  return std::count_if(nodes.begin(), nodes.end(), [](const torch::autograd::Node* node) {
    return dynamic_cast<const SyncBatchNormNode*>(node) != nullptr;
  });
}

void attend_backward_gathers(Group& group, int64_t times) {
  for (int64_t i = 0; i < times; ++i) {
    static_cast<void>(gather_backward(group, {.sums = at::empty({0}, at::kDouble)}));
  }
}

}  // namespace muster
