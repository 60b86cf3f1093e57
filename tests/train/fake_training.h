#pragma once

#include <muster/base/check.h>
#include <muster/train/callback.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::test {

/// A training whose events a test makes up, and which notes what is asked of it.
class FakeTraining final : public Training {
 public:
  [[nodiscard]] torch::nn::Module& module() const override {
    check(module_ != nullptr, "the test has no module");
    return *module_;
  }
  [[nodiscard]] const NamedTensors& parameters() const override { return parameters_; }
  [[nodiscard]] const NamedTensors& buffers() const override { return buffers_; }
  [[nodiscard]] torch::optim::Optimizer& optimizer() const override {
    check(optimizer_ != nullptr, "the test has no optimizer");
    return *optimizer_;
  }
  [[nodiscard]] const std::string& run_dir() const override { return run_dir_; }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] bool had_checkpoint(std::string_view name) const override {
    return had_.contains(std::string{name});
  }
  void broadcast_buffers() override { ++broadcasts_; }
  [[nodiscard]] std::optional<double> metric(std::string_view name) const override {
    const auto found = metrics_.find(std::string{name});
    return found != metrics_.end() ? found->second : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> metric_names() const override {
    std::vector<std::string> names;
    names.reserve(metrics_.size());
    for (const auto& [name, value] : metrics_) {
      names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] bool is_logging_step() const override { return logging_step_; }
  void log(std::string_view name, double value) override { logged_.emplace_back(name, value); }
  void stop(std::string_view reason) override { stops_.emplace_back(reason); }
  void save(const SaveRequest& request) override {
    saves_.push_back(request);
    if (on_save_) {
      on_save_();
    }
  }

  torch::nn::Module* module_ = nullptr;
  torch::optim::Optimizer* optimizer_ = nullptr;
  NamedTensors parameters_{};
  NamedTensors buffers_{};
  std::string run_dir_ = "run";
  std::string id_ = "0123456789abcdef0123456789abcdef";
  std::set<std::string> had_{};  // checkpoints that lay there before it went on
  std::map<std::string, std::optional<double>> metrics_{};
  bool logging_step_ = true;
  int broadcasts_ = 0;
  std::vector<std::pair<std::string, double>> logged_{};
  std::vector<std::string> stops_{};
  std::vector<SaveRequest> saves_{};
  std::function<void()> on_save_{};
};

/// Takes one callback through a training, event by event.
class FakeRun {
 public:
  FakeRun(FakeTraining& training, Callback& callback, int64_t batches_of_an_epoch = 4)
      : training_{training}, callback_{callback}, batches_{batches_of_an_epoch} {}

  /// Goes on from there.
  FakeRun& at(int64_t epoch, int64_t step) {
    epoch_ = epoch;
    step_ = step;
    return *this;
  }

  void start() { callback_.on_start(progress(Stage::fit)); }
  void epoch_start() { callback_.on_epoch_start(progress(Stage::fit)); }

  /// So many optimizer steps of one batch each.
  void steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      callback_.on_before_optimizer_step(progress(Stage::fit));
      ++step_;
      ++done_;
      callback_.on_batch_end(progress(Stage::fit));
    }
  }

  using Values = std::vector<std::pair<std::string, std::optional<double>>>;

  void validation_start() {
    Progress progress = this->progress(Stage::validate);
    progress.done = 0;
    callback_.on_start(progress);
    callback_.on_epoch_start(progress);
  }
  void validation_end(const Values& values) {
    const Report report = this->report("validate", values);
    callback_.on_epoch_end(progress(Stage::validate), report);
    callback_.on_end(progress(Stage::validate));
  }
  void validate(const Values& values) {
    validation_start();
    validation_end(values);
  }

  void epoch_end(const Values& values = {}) {
    const Report report = this->report("fit", values);
    callback_.on_epoch_end(progress(Stage::fit), report);
    if (done_ >= batches_) {
      ++epoch_;
      done_ = 0;
    }
  }

  /// A whole epoch of training, with a validation at its end unless there are no values of it.
  void epoch(const Values& validation, const Values& training = {}) {
    epoch_start();
    steps(batches_ - done_);
    if (!validation.empty()) {
      validate(validation);
    }
    epoch_end(training);
  }

  void end() { callback_.on_end(progress(Stage::fit)); }

  [[nodiscard]] Progress progress(Stage stage) const {
    return {.stage = stage,
            .epoch = epoch_,
            .global_step = step_,
            .batches = batches_,
            .done = stage == Stage::fit ? done_ : batches_,
            .values = values_,
            .training = &training_};
  }

  /// What the loop shows in its progress.
  std::vector<std::pair<std::string, double>> values_{};

 private:
  Report report(const std::string& stage, const Values& values) const {
    for (const auto& [name, value] : values) {
      training_.metrics_[name] = value;
    }
    return {.stage = stage, .epoch = epoch_, .step = step_, .samples = 8, .metrics = values};
  }

  FakeTraining& training_;
  Callback& callback_;
  int64_t batches_;
  int64_t epoch_ = 0;
  int64_t step_ = 0;
  int64_t done_ = 0;
};

}  // namespace muster::test
