#include "training_state_internal.h"

#include "module_internal.h"
#include "names_internal.h"
#include "training_id_internal.h"

#include <muster/base/check.h>
#include <muster/io/checkpoint_folder.h>
#include <muster/io/value_file.h>
#include <muster/io/weights.h>
#include <muster/train/optimizer_state.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace muster {

namespace {

constexpr const char* state_file = "state.safetensors";

std::vector<at::Tensor> optimized_by(const torch::optim::Optimizer& optimizer,
                                     const NamedTensors& parameters) {
  std::set<const void*> known;
  for (const auto& [name, parameter] : parameters) {
    known.insert(parameter.unsafeGetTensorImpl());
  }
  std::vector<at::Tensor> out;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      check(known.contains(parameter.unsafeGetTensorImpl()),
            "configure_optimizers: a parameter of the optimizer is none of the module's, so that "
            "its gradient would not be that of all ranks; register what holds it in the module");
      out.push_back(parameter);
    }
  }
  return out;
}

std::vector<at::Tensor> not_among(const std::vector<at::Tensor>& tensors,
                                  const NamedTensors& parameters) {
  std::vector<at::Tensor> out;
  for (const auto& [name, parameter] : parameters) {
    const auto same = [&, &parameter = parameter](const at::Tensor& t) {
      return t.is_same(parameter);
    };
    if (parameter.requires_grad() && std::none_of(tensors.begin(), tensors.end(), same)) {
      out.push_back(parameter);
    }
  }
  return out;
}

/// What may be the name of a checkpoint, beside the links.
void check_checkpoint_name(const std::string& name) {
  constexpr std::string_view taken =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._=-";
  check(!name.empty() && name.front() != '.' && name.size() <= 200 &&
            name.find_first_not_of(taken) == std::string::npos && name != "last" && name != "best",
        "a checkpoint cannot be called \"{}\": expected at most 200 of the characters "
        "[A-Za-z0-9._=-], no dot in front, and neither last nor best",
        name);
}

Optimizers optimizers_of(ModuleBase& module) {
  Optimizers optimizers = module.configure_optimizers();
  check(optimizers.optimizer != nullptr, "configure_optimizers gave no optimizer");
  for (const auto& config : optimizers.schedulers) {
    check(config.scheduler != nullptr && config.frequency >= 1,
          "configure_optimizers gave a scheduler that is null, or of a frequency below 1");
    check(!config.scheduler->needs_metric() || !config.monitor.empty(),
          "a scheduler follows a metric; say which one: {{.scheduler = ..., .monitor = \"...\"}}");
  }
  return optimizers;
}

void check_keys(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  std::set<std::string> keys;
  for (const auto& callback : callbacks) {
    const std::string key = callback->state_key();
    check(key.empty() || keys.insert(key).second,
          "two callbacks have the state key {}: a checkpoint could not tell them apart", key);
  }
}

const Value& at(const Value& state, std::string_view key) {
  const Value* found = state.find(key);
  check(found != nullptr, ErrorKind::data, "the checkpoint's {} holds no {}", state_file, key);
  return *found;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

void remove_checkpoint(const fs::path& folder) {
  // Only what a checkpoint is, whatever a callback calls it.
  if (fs::is_regular_file(folder / "manifest.json")) {
    fs::remove_all(folder);
  }
}

}  // namespace

TrainingState::TrainingState(ModuleBase& module, FitContext& context)
    : module_{module},
      context_{context},
      parameters_{parameters_of(module)},
      buffers_{buffers_of(module)},
      optimizers_{optimizers_of(module)},
      optimized_{optimized_by(*optimizers_.optimizer, parameters_)},
      others_{not_among(optimized_, parameters_)},
      ddp_{context.group,
           parameters_,
           buffers_,
           {.find_unused_parameters =
                context.options.strategy == Strategy::ddp_find_unused_parameters_true}},
      saver_{context.options.async_checkpointing,
             context.options.checkpoint_failure == CheckpointFailure::stop} {
  if (context.options.precision == Precision::f16_mixed) {
    scaler_.emplace();
  }
  check_keys(context.callbacks);
  if (context.options.enable_checkpointing) {
    // What cannot be saved is told before an epoch is lost.
    static_cast<void>(optimizer_state(*optimizers_.optimizer));
  }
}

void TrainingState::zero_grad() {
  optimizers_.optimizer->zero_grad();
  for (auto& parameter : others_) {
    parameter.mutable_grad().reset();
  }
}

std::optional<double> TrainingState::metric(std::string_view name) const {
  const auto found = std::find_if(latest_.begin(), latest_.end(),
                                  [&](const Latest& item) { return item.name == name; });
  return found == latest_.end() ? std::nullopt : found->value;
}

std::vector<std::string> TrainingState::metric_names() const {
  std::vector<std::string> names;
  names.reserve(latest_.size());
  for (const auto& item : latest_) {
    names.push_back(item.name);
  }
  return names;
}

void TrainingState::log(std::string_view name, double value) {
  check_name("log", name);
  const auto found = std::find_if(logged_.begin(), logged_.end(),
                                  [&](const auto& item) { return item.first == name; });
  if (found != logged_.end()) {
    found->second = value;
  } else {
    logged_.emplace_back(name, value);
  }
}

std::vector<std::pair<std::string, double>> TrainingState::take_logged() {
  return std::exchange(logged_, {});
}

void TrainingState::stop(std::string_view reason) {
  if (!stop_reason) {
    stop_reason = reason;
  }
}

void TrainingState::update(const Report& report) {
  const bool of_training = report.stage == to_string(Stage::fit);
  for (const auto& [name, value] : report.metrics) {
    const auto found =
        std::find_if(latest_.begin(), latest_.end(),
                     [&, &key = name](const Latest& item) { return item.name == key; });
    if (found == latest_.end()) {
      latest_.push_back({.name = name, .value = value, .of_training = of_training});
    } else {
      found->value = value ? value : found->value;
      found->of_training = found->of_training || of_training;
    }
  }
}

std::vector<std::pair<std::string, std::optional<double>>> TrainingState::latest(
    bool of_training_alone) const {
  std::vector<std::pair<std::string, std::optional<double>>> out;
  for (const auto& item : latest_) {
    if (item.of_training || !of_training_alone) {
      out.emplace_back(item.name, item.value);
    }
  }
  return out;
}

void TrainingState::step_schedulers(SchedulerConfig::Interval interval, int64_t count) {
  for (const auto& config : optimizers_.schedulers) {
    if (config.interval != interval || count % config.frequency != 0) {
      continue;
    }
    if (!config.scheduler->needs_metric()) {
      config.scheduler->step();
      continue;
    }
    const auto value = metric(config.monitor);
    const auto names = metric_names();
    check(value || std::find(names.begin(), names.end(), config.monitor) != names.end() ||
              names.empty(),
          "a scheduler follows {}, which nothing has reported; there are: {}", config.monitor,
          listed(names));
    if (value) {
      config.scheduler->step(value);
    }
  }
}

Value TrainingState::latest_state() const {
  Value::List latest;
  for (const auto& item : latest_) {
    latest.emplace_back(Value::Dict{{"name", item.name},
                                    {"value", item.value ? Value{*item.value} : Value{}},
                                    {"of_training", item.of_training}});
  }
  return latest;
}

void TrainingState::keep_log() { kept_ = {.log = collect_log(), .latest = latest_state()}; }

Value TrainingState::state(const Value& log) const {
  Value state = Value::Dict{};
  state["epoch"] = position.epoch;
  state["last_epoch"] = last_epoch;
  state["epoch_contents"] = epoch_contents;
  state["global_step"] = position.global_step;
  state["batches_done"] = position.batches_done;
  state["validation_due"] = position.validation_due;
  state["epoch_ended"] = position.epoch_ended;
  state["optimizer"] = optimizer_state(*optimizers_.optimizer);
  Value::List schedulers;
  for (const auto& config : optimizers_.schedulers) {
    schedulers.push_back(config.scheduler->state());
  }
  state["lr_schedulers"] = std::move(schedulers);
  state["grad_scaler"] = scaler_ ? scaler_->state() : Value{};
  Value callbacks = Value::Dict{};
  for (const auto& callback : context_.callbacks) {
    if (const std::string key = callback->state_key(); !key.empty()) {
      callbacks[key] = callback->state();
    }
  }
  state["callbacks"] = std::move(callbacks);
  state["metrics"] = kept_ ? kept_->latest : latest_state();
  Value::List logged;
  for (const auto& [name, value] : logged_) {
    logged.emplace_back(Value::List{name, value});
  }
  state["logged"] = std::move(logged);
  state["logging_step"] = logging_step;
  state["log"] = log;
  state["module"] = module_.on_save_checkpoint();
  return state;
}

void TrainingState::save(const SaveRequest& request) {
  check_checkpoint_name(request.name);
  // A callback's list of them may come from a checkpoint that somebody else made.
  std::ranges::for_each(request.remove, check_checkpoint_name);
  const Value log = kept_ ? kept_->log : collect_log();
  if (context_.writer == nullptr) {
    return;
  }
  NamedTensors model = parameters_;
  model.insert(model.end(), buffers_.begin(), buffers_.end());
  for (const auto& callback : context_.callbacks) {
    callback->on_save(model);
  }
  if (context_.options.async_checkpointing) {  // the training goes on and changes them
    for (auto& [name, tensor] : model) {
      tensor = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true);
    }
  }
  CheckpointContent content{.global_step = position.global_step,
                            .epoch = last_epoch,
                            .training = id(),
                            .model = std::move(model),
                            .files = {{state_file, value_file_bytes(state(log))}}};
  saver_.save(
      [content = std::move(content), request, run_dir = fs::path{context_.options.run_dir}] {
        const fs::path folder = run_dir / "checkpoints";
        const fs::path target = folder / (request.name + ".ckpt");
        write_checkpoint(target, content);
        remember_training(run_dir, content.training);
        point_to_checkpoint(folder / "last.ckpt", target);
        if (request.best) {
          point_to_checkpoint(folder / "best.ckpt", target);
        }
        for (const auto& name : request.remove) {  // only now that another one is whole
          remove_checkpoint(folder / (name + ".ckpt"));
        }
      });
}

void TrainingState::check_goes_on(const Value& saved, const std::string& path) const {
  if (position.epoch_ended || position.batches_done == 0) {
    return;
  }
  check(identical(saved, epoch_contents), ErrorKind::data,
        "{} was written within an epoch of {}, and this training's is of {}: go on with the same, "
        "or from the end of an epoch",
        path, to_json(saved), to_json(epoch_contents));
}

void TrainingState::load(const std::string& path) {
  CheckpointContent content = read_checkpoint(path);
  const auto file = content.files.find(state_file);
  check(file != content.files.end(), ErrorKind::data,
        "{} holds no {}: it has weights, but no state of a training to go on from", path,
        state_file);
  const Value saved = value_from_file(parse_safetensors(file->second, path), path);
  NamedTensors targets = parameters_;
  targets.insert(targets.end(), buffers_.begin(), buffers_.end());
  copy_weights(std::move(content.model), targets, path);
  position = {.epoch = at(saved, "epoch").as_int(),
              .global_step = at(saved, "global_step").as_int(),
              .batches_done = at(saved, "batches_done").as_int(),
              .validation_due = at(saved, "validation_due").as_bool(),
              .epoch_ended = at(saved, "epoch_ended").as_bool()};
  last_epoch = at(saved, "last_epoch").as_int();
  check_goes_on(at(saved, "epoch_contents"), path);
  loaded_seed = at(at(saved, "epoch_contents"), "seed").as_int();
  load_optimizer_state(*optimizers_.optimizer, at(saved, "optimizer"));
  const auto& schedulers = at(saved, "lr_schedulers").as_list();
  check(schedulers.size() == optimizers_.schedulers.size(), ErrorKind::data,
        "{} holds {} schedulers, and configure_optimizers gave {}", path, schedulers.size(),
        optimizers_.schedulers.size());
  for (size_t i = 0; i < schedulers.size(); ++i) {
    optimizers_.schedulers[i].scheduler->load_state(schedulers[i]);
  }
  if (const Value& scaler = at(saved, "grad_scaler"); scaler_ && !scaler.is_null()) {
    scaler_->load_state(scaler);
  }
  for (const auto& callback : context_.callbacks) {
    const std::string key = callback->state_key();
    if (const Value* own = at(saved, "callbacks").find(key); !key.empty() && own != nullptr) {
      callback->load_state(*own);
    }
  }
  for (const auto& item : at(saved, "metrics").as_list()) {
    const Value& value = at(item, "value");
    latest_.push_back({.name = at(item, "name").as_string(),
                       .value = value.is_null() ? std::nullopt : std::optional{value.as_double()},
                       .of_training = at(item, "of_training").as_bool()});
  }
  for (const auto& item : at(saved, "logged").as_list()) {
    logged_.emplace_back(item.as_list().at(0).as_string(), item.as_list().at(1).as_double());
  }
  logging_step = at(saved, "logging_step").as_bool();
  loaded_log = at(saved, "log");
  module_.on_load_checkpoint(at(saved, "module"));
}

}  // namespace muster
