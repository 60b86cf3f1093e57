#pragma once

#include <muster/data/loader.h>
#include <muster/train/module.h>
#include <muster/train/pass.h>
#include <muster/train/prediction_shard.h>
#include <muster/train/train_pass.h>
#include <muster/value/convert.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {

/// One loader, or several, as a Trainer takes them. Refers to the loaders; does not own them.
template <typename S>
class LoaderList {
 public:
  /// None.
  LoaderList() = default;
  LoaderList(const Loader<S>& loader) : loaders_{&loader} {}  // NOLINT(google-explicit-constructor)
  /// Error of kind `usage` for a null pointer.
  LoaderList(std::vector<const Loader<S>*> loaders) : loaders_{std::move(loaders)} {
    for (const auto* loader : loaders_) {
      check(loader != nullptr, "a list of loaders has a null pointer in it");
    }
  }

  [[nodiscard]] const std::vector<const Loader<S>*>& loaders() const { return loaders_; }

 private:
  std::vector<const Loader<S>*> loaders_{};
};

namespace detail {

/// To where the module computes, in the type it computes in, with the hooks around.
template <typename S, typename O>
void transfer(Module<S, O>& module, Batch<S>& batch, const std::optional<at::ScalarType>& dtype,
              Step& step) {
  module.on_before_batch_transfer(batch, step);
  module.transfer_batch_to_device(batch, step);
  if (dtype) {
    batch = batch.to(*dtype);
  }
  module.on_after_batch_transfer(batch, step);
}

}  // namespace detail

/// TrainPass for a Module.
template <typename S, typename O>
class TypedTrainPass final : public TrainPass {
 public:
  TypedTrainPass(Module<S, O>& module, const Loader<S>& loader)
      : module_{module}, loader_{loader} {}

  [[nodiscard]] ModuleBase& module() override { return module_; }
  [[nodiscard]] std::optional<int64_t> batches() const override { return loader_.size(); }
  [[nodiscard]] int64_t batch_size() const override { return loader_.options().batch_size; }
  [[nodiscard]] bool is_sharded() const override { return loader_.is_sharded(); }
  [[nodiscard]] bool has_known_counts() const override { return loader_.has_known_counts(); }
  [[nodiscard]] int64_t samples_in(int64_t k) const override {
    return static_cast<int64_t>(epoch_->plan()->batch(k).size());
  }

  void open(int64_t epoch, const Share& share,
            const std::optional<at::ScalarType>& dtype) override {
    dtype_ = dtype;
    ahead_.clear();
    epoch_.emplace(loader_.batches(epoch, share));
  }
  bool next() override {
    batch_.reset();  // its memory is what the next one takes
    if (ahead_.empty()) {
      batch_ = epoch_->next();
    } else {
      batch_ = std::move(ahead_.front());
      ahead_.pop_front();
    }
    return batch_.has_value();
  }
  Ahead look_ahead(int64_t rounds) override {
    while (static_cast<int64_t>(ahead_.size()) < rounds) {
      auto batch = epoch_->next();
      if (!batch) break;
      ahead_.push_back(std::move(*batch));
    }
    Ahead seen;
    for (const auto& batch : ahead_) {
      if (seen.rounds == rounds) break;
      ++seen.rounds;
      seen.filled += batch.size() > 0 ? 1 : 0;
    }
    return seen;
  }
  [[nodiscard]] int64_t batch_idx() const override { return batch_->batch_idx(); }
  [[nodiscard]] const std::vector<int64_t>& indices() const override { return batch_->indices(); }

  void batch_start(Step& step) override {
    detail::transfer(module_, *batch_, dtype_, step);
    module_.on_train_batch_start(*batch_, step);
  }
  at::Tensor training_step(Step& step) override { return module_.training_step(*batch_, step); }
  void batch_end(const at::Tensor& loss, Step& step) override {
    module_.on_train_batch_end(loss, *batch_, step);
  }

 private:
  Module<S, O>& module_;
  const Loader<S>& loader_;
  std::optional<at::ScalarType> dtype_{};
  std::optional<Epoch<S>> epoch_{};
  std::optional<Batch<S>> batch_{};
  /// Batches that were looked at before they are taken.
  std::deque<Batch<S>> ahead_{};
};

/// Pass for one stage of a Module: forwards to the hooks that carry the stage in their names.
template <Stage stage_, typename S, typename O>
class TypedPass final : public Pass {
 public:
  /// `outputs` takes what predict_step gives, unless it is null.
  TypedPass(Module<S, O>& module, const LoaderList<S>& loaders,
            PredictionShardWriter* outputs = nullptr)
      : module_{module}, loaders_{loaders.loaders()}, outputs_{outputs} {}

  [[nodiscard]] Stage stage() const override { return stage_; }
  [[nodiscard]] ModuleBase& module() override { return module_; }
  [[nodiscard]] const std::vector<std::pair<std::string, Metric*>>& metrics() const override {
    return module_.metrics();
  }
  [[nodiscard]] int64_t loaders() const override { return static_cast<int64_t>(loaders_.size()); }
  [[nodiscard]] std::optional<int64_t> batches(int64_t loader) const override {
    return at(loader).size();
  }

  void open(int64_t loader, const Share& share,
            const std::optional<at::ScalarType>& dtype) override {
    loader_ = loader;
    dtype_ = dtype;
    epoch_.emplace(at(loader).batches(0, share));
  }

  bool next() override {
    do {
      batch_ = epoch_->next();
    } while (batch_ && batch_->size() == 0);
    if (!batch_) {
      epoch_.reset();
    }
    return batch_.has_value();
  }

  [[nodiscard]] int64_t batch_idx() const override { return batch_->batch_idx(); }
  [[nodiscard]] const std::vector<int64_t>& indices() const override { return batch_->indices(); }

  void setup(Step& step) override { module_.setup(step); }
  void teardown(Step& step) override { module_.teardown(step); }

  void start(Step& step) override {
    if constexpr (stage_ == Stage::validate) {
      module_.on_validation_model_eval(step);
      module_.on_validation_start(step);
    } else if constexpr (stage_ == Stage::test) {
      module_.on_test_model_eval(step);
      module_.on_test_start(step);
    } else {
      module_.on_predict_model_eval(step);
      module_.on_predict_start(step);
    }
  }

  void epoch_start(Step& step) override {
    if constexpr (stage_ == Stage::validate) {
      module_.on_validation_epoch_start(step);
    } else if constexpr (stage_ == Stage::test) {
      module_.on_test_epoch_start(step);
    } else {
      module_.on_predict_epoch_start(step);
    }
  }

  void batch(Step& step) override {
    auto& batch = *batch_;
    detail::transfer(module_, batch, dtype_, step);
    if constexpr (stage_ == Stage::validate) {
      module_.on_validation_batch_start(batch, step);
      module_.validation_step(batch, step);
      module_.on_validation_batch_end(batch, step);
    } else if constexpr (stage_ == Stage::test) {
      module_.on_test_batch_start(batch, step);
      module_.test_step(batch, step);
      module_.on_test_batch_end(batch, step);
    } else {
      module_.on_predict_batch_start(batch, step);
      const std::vector<O> outputs = module_.predict_step(batch, step);
      check(outputs.size() == batch.indices().size(),
            "predict_step gave {} outputs for a batch of {} samples; give one a sample, in order",
            outputs.size(), batch.indices().size());
      keep(outputs);
      module_.on_predict_batch_end(outputs, batch, step);
    }
  }

  void epoch_end(Step& step) override {
    if constexpr (stage_ == Stage::validate) {
      module_.on_validation_epoch_end(step);
    } else if constexpr (stage_ == Stage::test) {
      module_.on_test_epoch_end(step);
    } else {
      module_.on_predict_epoch_end(step);
    }
  }

  void end(Step& step) override {
    if constexpr (stage_ == Stage::validate) {
      module_.on_validation_end(step);
      module_.on_validation_model_train(step);
    } else if constexpr (stage_ == Stage::test) {
      module_.on_test_end(step);
      module_.on_test_model_train(step);
    } else {
      module_.on_predict_end(step);
      module_.on_predict_model_train(step);
    }
  }

 private:
  [[nodiscard]] const Loader<S>& at(int64_t loader) const {
    return *loaders_.at(static_cast<size_t>(loader));
  }

  void keep(const std::vector<O>& outputs) {
    if constexpr (!std::is_same_v<O, NoOutput>) {
      for (size_t i = 0; outputs_ != nullptr && i < outputs.size(); ++i) {
        outputs_->add({loader_, batch_->indices()[i]}, to_bytes(to_value(outputs[i])));
      }
    }
  }

  Module<S, O>& module_;
  std::vector<const Loader<S>*> loaders_;
  PredictionShardWriter* outputs_;
  int64_t loader_ = 0;
  std::optional<at::ScalarType> dtype_{};
  std::optional<Epoch<S>> epoch_;
  std::optional<Batch<S>> batch_;
};

}  // namespace muster
