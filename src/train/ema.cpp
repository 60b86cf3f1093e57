#include <muster/base/check.h>
#include <muster/train/ema.h>
#include <muster/value/tensor.h>

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace muster {

namespace {

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  out.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    out.push_back(tensor.detach().clone());
  }
  return out;
}

}  // namespace

EMA::EMA(const EMAOptions& options) : options_{options} {
  check(options.decay >= 0 && options.decay <= 1, "decay: expected 0 to 1, found {}",
        options.decay);
  check(options.update_every_n_steps >= 1, "update_every_n_steps: expected at least 1, found {}",
        options.update_every_n_steps);
  check(options.update_starting_at_step >= 0,
        "update_starting_at_step: expected at least 0, found {}", options.update_starting_at_step);
}

void EMA::on_start(const Progress& progress) {
  if (progress.training == nullptr) {
    return;
  }
  if (progress.stage == Stage::fit) {
    start(*progress.training);
  } else {
    enter_average(*progress.training);
  }
}

void EMA::start(Training& training) {
  NamedTensors all = training.parameters();
  has_buffers_ = options_.use_buffers && !training.buffers().empty();
  if (options_.use_buffers) {
    all.insert(all.end(), training.buffers().begin(), training.buffers().end());
  }
  // A tensor that the module has under two names must not move twice.
  std::set<const void*> seen;
  std::erase_if(all, [&](const auto& item) {
    return !seen.insert(item.second.unsafeGetTensorImpl()).second;
  });
  const auto first_other = std::stable_partition(all.begin(), all.end(), [](const auto& item) {
    return item.second.is_floating_point() || item.second.is_complex();
  });
  floating_ = static_cast<size_t>(std::distance(all.begin(), first_other));
  names_.clear();
  tensors_.clear();
  for (auto& [name, tensor] : all) {
    names_.push_back(name);
    tensors_.push_back(tensor);
  }
  other_.clear();
  exchanged_ = false;
  updates_ = 0;
  if (const auto state = std::exchange(loaded_, std::nullopt)) {
    resume(*state);
  }
}

void EMA::resume(const Value& state) {
  const Value* updates = state.find("updates");
  const Value* trained = state.find("trained");
  check(updates != nullptr && trained != nullptr, ErrorKind::data,
        "EMA: the checkpoint holds no state of it");
  updates_ = updates->as_int();
  if (!averages()) {
    return;
  }
  other_ = copies(tensors_);
  const c10::AutoGradMode no_grad{false};
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Value* weights = trained->find(names_[i]);
    check(weights != nullptr && weights->as_tensor().sizes() == tensors_[i].sizes(),
          ErrorKind::data, "EMA: the checkpoint has no trained weights of {} {}", names_[i],
          describe(tensors_[i]));
    tensors_[i].copy_(weights->as_tensor());
  }
}

void EMA::on_batch_end(const Progress& progress) {
  const int64_t index = progress.global_step - 1;
  if (progress.stage != Stage::fit || index < options_.update_starting_at_step ||
      index % options_.update_every_n_steps != 0) {
    return;
  }
  const c10::AutoGradMode no_grad{false};
  if (!averages()) {
    other_ = copies(tensors_);
  } else {
    const at::TensorList average{other_};
    const at::TensorList trained{tensors_};
    at::_foreach_lerp_(average.slice(0, floating_), trained.slice(0, floating_),
                       1.0 - options_.decay);
    if (floating_ < tensors_.size()) {
      at::_foreach_copy_(average.slice(floating_), trained.slice(floating_));
    }
  }
  ++updates_;
}

void EMA::exchange() {
  const c10::AutoGradMode no_grad{false};
  auto now = copies(tensors_);
  at::_foreach_copy_(tensors_, other_);
  other_ = std::move(now);
  exchanged_ = !exchanged_;
}

void EMA::enter_average(Training& training) {
  if (!averages() || exchanged_) {
    return;
  }
  exchange();
  if (has_buffers_) {
    // Each rank has averaged those of its own batches.
    training.broadcast_buffers();
  }
}

void EMA::on_end(const Progress& progress) {
  if (progress.training == nullptr) {
    return;
  }
  if (progress.stage == Stage::fit) {
    enter_average(*progress.training);
  } else if (exchanged_) {
    exchange();
  }
}

Value EMA::state() const {
  Value state;
  state["updates"] = updates_;
  Value::Dict trained;
  if (averages()) {
    const auto& weights = exchanged_ ? other_ : tensors_;
    for (size_t i = 0; i < weights.size(); ++i) {
      trained.emplace_back(names_[i], weights[i].detach());
    }
  }
  state["trained"] = std::move(trained);
  return state;
}

void EMA::load_state(const Value& state) { loaded_ = state; }

void EMA::on_save(NamedTensors& model) const {
  if (!averages()) {
    return;
  }
  const auto& average = exchanged_ ? tensors_ : other_;
  for (auto& [name, tensor] : model) {
    const auto own = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&, of = tensor](const auto& mine) { return mine.is_same(of); });
    if (own != tensors_.end()) {
      tensor = average[static_cast<size_t>(std::distance(tensors_.begin(), own))];
    }
  }
}

}  // namespace muster
