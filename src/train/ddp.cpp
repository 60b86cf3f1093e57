#include <muster/train/ddp.h>

#include <muster/base/check.h>
#include <muster/base/digest.h>
#include <muster/value/tensor.h>

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

namespace muster {

namespace {

enum Note : size_t {
  note_samples,
  note_loss_sum,
  note_stop,
  note_save,
  note_non_finite,
  note_more,
  note_lacks,
  notes
};

/// Of a rank within a step; the parameters' type may be float32.
constexpr int64_t most_samples = int64_t{1} << 22U;

/// What must be alike on all ranks: one line for each tensor, the name first.
std::vector<std::string> describe_all(const NamedTensors& parameters, const NamedTensors& buffers) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view what, const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      check(tensor.defined(), "{} '{}' is an undefined tensor", what, name);
      lines.push_back(format("{} '{}': {}{}{}{}", what, name, dtype_name(tensor.scalar_type()),
                             shape_text(tensor.sizes()),
                             tensor.is_contiguous() ? "" : " of strides ",
                             tensor.is_contiguous() ? "" : shape_text(tensor.strides())));
      if (tensor.requires_grad()) lines.back() += ", requires a gradient";
    }
  };
  add("parameter", parameters);
  add("buffer", buffers);
  return lines;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

void check_alike(Group& group, const NamedTensors& parameters, const NamedTensors& buffers) {
  std::string mine;
  for (const auto& line : describe_all(parameters, buffers)) mine += line + '\n';
  const auto digests = group.all_gather(sha256_hex(mine));
  const auto same = [&](const Contribution& rank) { return rank.bytes == digests[0].bytes; };
  if (std::all_of(digests.begin(), digests.end(), same)) return;

  const auto texts = group.all_gather(mine);
  const auto first = split_lines(texts[0].bytes);
  for (const auto& text : texts) {
    const auto lines = split_lines(text.bytes);
    if (lines == first) continue;
    const auto [here, there] =
        std::mismatch(first.begin(), first.end(), lines.begin(), lines.end());
    fail(ErrorKind::usage,
         "the module is not the same on all ranks; the first difference: rank 0 has {}, rank {} "
         "has {}. Build the module on every rank from the same configuration",
         here == first.end() ? "no more" : *here, text.rank,
         there == lines.end() ? "no more" : *there);
  }
}

std::vector<at::Tensor> tensors_of(const NamedTensors& parameters, const NamedTensors& buffers) {
  std::vector<at::Tensor> tensors;
  for (const auto* named : {&parameters, &buffers}) {
    for (const auto& [name, tensor] : *named) tensors.push_back(tensor);
  }
  return tensors;
}

/// Those that backward computes gradients for, each once.
NamedTensors trained(const NamedTensors& parameters) {
  NamedTensors out;
  std::unordered_set<const void*> seen;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.requires_grad() && seen.insert(tensor.unsafeGetTensorImpl()).second) {
      out.emplace_back(name, tensor);
    }
  }
  check(!out.empty(), "none of the module's {} parameters requires a gradient", parameters.size());
  return out;
}

std::array<double, notes> notes_of(const StepFlags& flags) {
  check(flags.samples >= 0 && flags.samples < most_samples,
        "{} samples of one rank in one step; at most {} are possible", flags.samples,
        most_samples - 1);
  std::array<double, notes> out{};
  out[note_samples] = static_cast<double>(flags.samples);
  out[note_loss_sum] = flags.loss_sum;
  out[note_stop] = flags.stop ? 1 : 0;
  out[note_save] = flags.save ? 1 : 0;
  out[note_non_finite] = flags.non_finite ? 1 : 0;
  out[note_more] = flags.more ? 1 : 0;
  out[note_lacks] = flags.lacks ? 1 : 0;
  return out;
}

AgreedFlags agree(std::span<const double> all, std::optional<int64_t> step_samples) {
  AgreedFlags agreed;
  for (int rank = 0; !all.empty(); ++rank, all = all.subspan(notes)) {
    agreed.samples += std::llround(all[note_samples]);
    agreed.loss_sum += all[note_loss_sum];
    agreed.stop = agreed.stop || all[note_stop] != 0;
    agreed.save = agreed.save || all[note_save] != 0;
    agreed.more = agreed.more || all[note_more] != 0;
    agreed.lacks = agreed.lacks || all[note_lacks] != 0;
    if (all[note_non_finite] == 0 || agreed.non_finite) continue;
    agreed.non_finite = true;
    agreed.non_finite_rank = rank;
  }
  check(!step_samples || agreed.samples == *step_samples, ErrorKind::mismatch,
        "the ranks ran {} samples in a step of {}: the gradients are not those of the mean over "
        "its samples",
        agreed.samples, step_samples.value_or(0));
  return agreed;
}

}  // namespace

struct Ddp::State {
  State(Group& its_group, const NamedTensors& parameters, NamedTensors its_buffers,
        const DdpOptions& options)
      : group{its_group}, buffers{std::move(its_buffers)} {
    check_alike(group, parameters, buffers);
    auto named = trained(parameters);
    for (const auto& [name, tensor] : named) reduced.push_back(tensor);
    if (group.size() == 1) return;
    reducer = make_gradient_reducer(group, std::move(named),
                                    {.notes = notes,
                                     .first_bucket_bytes = options.first_bucket_bytes,
                                     .bucket_bytes = options.bucket_bytes,
                                     .find_unused_parameters = options.find_unused_parameters});
    reducer->broadcast(tensors_of(parameters, buffers));
  }

  /// The gradient of the loss itself: its part of the mean over all samples, times W since the
  /// reducer divides by W; where their number is still unknown, its part of their sum. It is kept:
  /// torch would make a 1 anew in each step.
  const at::Tensor& scale(const at::Tensor& loss, int64_t samples,
                          std::optional<int64_t> step_samples) {
    const double by = step_samples ? static_cast<double>(samples) * group.size() /
                                         static_cast<double>(*step_samples)
                                   : static_cast<double>(samples);
    if (by != scale_by || scaled.sizes() != loss.sizes() ||
        scaled.scalar_type() != loss.scalar_type() || scaled.device() != loss.device()) {
      scaled = at::full(loss.sizes(), by, loss.options().requires_grad(false));
      scale_by = by;
    }
    return scaled;
  }

  AgreedFlags synchronise(const at::Tensor& loss, const at::Tensor& gradient,
                          std::optional<int64_t> step_samples, const StepFlags& flags) {
    const auto mine = notes_of(flags);
    AgreedFlags agreed;
    if (reducer != nullptr) {
      agreed = agree(reducer->reduce(loss, gradient, mine), step_samples);
    } else {
      if (loss.defined()) loss.backward(gradient);
      agreed = agree(mine, step_samples);
    }
    if (!step_samples && agreed.samples > 0) divide(agreed.samples);
    return agreed;
  }

  /// From the sum over the step's samples, which the reducer has divided by W, to the mean.
  void divide(int64_t samples) {
    const c10::AutoGradMode no_grad{false};
    const double by = static_cast<double>(group.size()) / static_cast<double>(samples);
    for (const auto& parameter : reduced) {
      if (parameter.grad().defined()) parameter.mutable_grad().mul_(by);
    }
  }

  Group group;
  NamedTensors buffers;
  std::vector<at::Tensor> reduced{};
  std::unique_ptr<GradientReducer> reducer{};  ///< none on a group of one
  at::Tensor scaled{};
  double scale_by = 0.0;
};

Ddp::Ddp(Group& group, const NamedTensors& parameters, NamedTensors buffers,
         const DdpOptions& options)
    : state_{std::make_unique<State>(group, parameters, std::move(buffers), options)} {}

Ddp::~Ddp() = default;

void Ddp::broadcast_buffers() {
  if (state_->reducer == nullptr || state_->buffers.empty()) return;
  state_->reducer->broadcast(tensors_of({}, state_->buffers));
}

void Ddp::prepare_for_forward() {
  if (state_->reducer != nullptr) state_->reducer->prepare_for_forward();
}

AgreedFlags Ddp::backward(const at::Tensor& loss, int64_t samples,
                          std::optional<int64_t> step_samples, bool last, const StepFlags& flags) {
  if (!loss.defined() || loss.numel() != 1) {
    fail(ErrorKind::usage, "a loss is one number, not {}", describe(loss));
  }
  check(loss.requires_grad(),
        "the loss depends on no parameter that requires a gradient: compute it from the network's "
        "output, without detach() or a NoGradGuard");
  check(samples > 0 && samples <= step_samples.value_or(samples),
        "{} samples are no part of a step of {}", samples, step_samples.value_or(samples));
  const at::Tensor& gradient = state_->scale(loss, samples, step_samples);
  if (last) return state_->synchronise(loss, gradient, step_samples, flags);
  loss.backward(gradient);
  return {};
}

AgreedFlags Ddp::backward_without_batch(std::optional<int64_t> step_samples,
                                        const StepFlags& flags) {
  return state_->synchronise({}, {}, step_samples, flags);
}

}  // namespace muster
