#include "sync_batch_norm_internal.h"

#include "sync_batch_norm_function_internal.h"

#include <muster/base/check.h>
#include <muster/comm/gather.h>
#include <muster/value/tensor.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/functional/batchnorm.h>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

namespace muster {

SyncBatchNormImpl::SyncBatchNormImpl(int64_t num_features)
    : SyncBatchNormImpl{SyncBatchNormOptions{.num_features = num_features}} {}

SyncBatchNormImpl::SyncBatchNormImpl(const SyncBatchNormOptions& its_options)
    : torch::nn::Module{"SyncBatchNorm"}, options{its_options} {
  check(options.num_features > 0, "SyncBatchNorm needs num_features of 1 or more, not {}",
        options.num_features);
  const bool tracks = options.track_running_stats;
  const auto channels = [&](bool wanted) {
    return wanted ? at::zeros({options.num_features}) : at::Tensor{};
  };
  weight = register_parameter("weight", channels(options.affine), options.affine);
  bias = register_parameter("bias", channels(options.affine), options.affine);
  running_mean = register_buffer("running_mean", channels(tracks));
  running_var = register_buffer("running_var", channels(tracks));
  num_batches_tracked =
      register_buffer("num_batches_tracked", tracks ? at::zeros({}, at::kLong) : at::Tensor{});
  reset_parameters();
}

void SyncBatchNormImpl::reset_running_stats() {
  if (!options.track_running_stats) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

void SyncBatchNormImpl::reset_parameters() {
  reset_running_stats();
  if (!options.affine) return;
  const c10::AutoGradMode no_grad{false};
  weight.fill_(1);
  bias.zero_();
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  check(input.dim() >= 2 && input.size(1) == options.num_features,
        "SyncBatchNorm takes [N, {0}] or [N, {0}, ...], not {1}", options.num_features,
        shape_text(input.sizes()));
  return tie_ != nullptr && is_training() ? forward_together(input) : forward_alone(input);
}

at::Tensor SyncBatchNormImpl::forward_alone(const at::Tensor& input) {
  const bool tracks = is_training() && options.track_running_stats;
  const double momentum = tracks ? count_batch() : options.momentum.value_or(0.0);
  return torch::nn::functional::batch_norm(
      input, running_mean, running_var,
      torch::nn::functional::BatchNormFuncOptions{}
          .weight(weight)
          .bias(bias)
          .training(is_training() || !options.track_running_stats)
          .momentum(momentum)
          .eps(options.eps));
}

at::Tensor SyncBatchNormImpl::forward_together(const at::Tensor& input) {
  NormalizedBatch batch = synced_batch_norm(tie_->group, name_, input, weight, bias, options.eps);
  tie_->forwards += batch.has_backward ? 1 : 0;
  if (!options.track_running_stats) return batch.output;
  const ChannelStatistics& all = batch.statistics;
  const at::Tensor variance = all.squares / static_cast<double>(all.count - 1);
  if (!tie_->uneven) {
    track(all.mean, variance);
  } else if (all.first_rank == tie_->group.rank()) {
    tie_->waiting.push_back({tie_->group.place().round, name_, all.mean, variance});
  }
  return batch.output;
}

double SyncBatchNormImpl::count_batch() {
  num_batches_tracked += 1;
  return options.momentum.value_or(1.0 / num_batches_tracked.item<double>());
}

void SyncBatchNormImpl::track(const at::Tensor& mean, const at::Tensor& variance) {
  const c10::AutoGradMode no_grad{false};
  const double momentum = count_batch();
  const auto move = [momentum](at::Tensor& average, const at::Tensor& batch) {
    average.copy_(batch * momentum + average.to(at::kDouble) * (1 - momentum));
  };
  move(running_mean, mean);
  move(running_var, variance);
}

std::shared_ptr<torch::nn::Module> SyncBatchNormImpl::clone(
    const std::optional<at::Device>& device) const {
  const c10::AutoGradMode no_grad{false};
  auto copy = std::make_shared<SyncBatchNormImpl>(options);
  const auto take = [&](at::Tensor& target, const at::Tensor& source) {
    if (!source.defined()) return;
    target.set_data(device ? source.to(*device, source.scalar_type(), false, true)
                           : source.clone());
  };
  take(copy->weight, weight);
  take(copy->bias, bias);
  take(copy->running_mean, running_mean);
  take(copy->running_var, running_var);
  take(copy->num_batches_tracked, num_batches_tracked);
  copy->train(is_training());
  return copy;
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << format(
      "muster::SyncBatchNorm({}, eps={}, momentum={}, affine={}, "
      "track_running_stats={})",
      options.num_features, options.eps,
      options.momentum ? format("{}", *options.momentum) : "None", options.affine,
      options.track_running_stats);
}

namespace {

constexpr std::string_view different_losses =
    "the losses of some ranks depend on {} forwards of SyncBatchNorm, those of others on {}; every "
    "rank that has a batch must run the same layers, and use what they give";

}  // namespace

SyncedBatchNorms::SyncedBatchNorms(const torch::nn::Module& module, const Group& group) {
  if (group.size() == 1) return;
  for (const auto& item : module.named_modules("", false)) {
    auto norm = std::dynamic_pointer_cast<SyncBatchNormImpl>(item.value());
    if (norm == nullptr) continue;
    norm->name_ = item.key();
    modules_.push_back(std::move(norm));
  }
  if (!modules_.empty()) tie_ = std::make_shared<BatchNormTie>(group);
}

SyncedBatchNorms::Tied::Tied(SyncedBatchNorms& norms) : norms_{norms} {
  if (norms_.tie_ != nullptr) norms_.tie_->forwards = 0;
  for (const auto& module : norms_.modules_) module->tie_ = norms_.tie_;
}

SyncedBatchNorms::Tied::~Tied() {
  for (const auto& module : norms_.modules_) module->tie_.reset();
}

void SyncedBatchNorms::begin_step(bool uneven) {
  if (tie_ != nullptr) tie_->uneven = uneven;
}

void SyncedBatchNorms::before_backward(const at::Tensor& loss) {
  if (tie_ == nullptr) return;
  const int64_t gathers = backward_gathers(loss);
  // Ranks whose forwards were the same will do the same, unless a loss leaves out some of them.
  if (gathers > 0 && gathers == tie_->forwards) return;
  for (const int64_t others : gather(tie_->group, gathers)) {
    check(others == gathers, ErrorKind::mismatch, different_losses, gathers, others);
  }
}

namespace {

/// What a rank tells the others before an uneven backward.
struct Announcement {
  int64_t gathers = -1;  ///< of its backward; -1 without a batch
  std::vector<BatchNormUpdate> updates{};
};

/// Of the ranks that have a batch, which must agree; 0 where none has.
int64_t agreed_gathers(const std::vector<Announcement>& ranks) {
  int64_t gathers = -1;
  for (const auto& rank : ranks) {
    if (rank.gathers < 0) continue;
    check(gathers < 0 || rank.gathers == gathers, ErrorKind::mismatch, different_losses, gathers,
          rank.gathers);
    gathers = rank.gathers;
  }
  return std::max<int64_t>(gathers, 0);
}

}  // namespace

void SyncedBatchNorms::before_uneven_backward(const at::Tensor& loss) {
  const auto ranks =
      gather(tie_->group, Announcement{.gathers = loss.defined() ? backward_gathers(loss) : -1,
                                       .updates = std::exchange(tie_->waiting, {})});
  const int64_t gathers = agreed_gathers(ranks);
  std::vector<BatchNormUpdate> updates;
  for (const auto& rank : ranks) {
    updates.insert(updates.end(), rank.updates.begin(), rank.updates.end());
  }
  // All of a round come from one rank, in the order of its forwards.
  std::stable_sort(updates.begin(), updates.end(),
                   [](const auto& left, const auto& right) { return left.round < right.round; });
  for (const auto& update : updates) {
    const auto module = std::find_if(modules_.begin(), modules_.end(),
                                     [&](const auto& m) { return m->name_ == update.layer; });
    if (module != modules_.end()) (*module)->track(update.mean, update.variance);
  }
  if (!loss.defined()) attend_backward_gathers(tie_->group, gathers);
}

}  // namespace muster
