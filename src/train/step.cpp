#include "names_internal.h"
#include "step_state_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/io/prediction_file.h>
#include <muster/io/tensor_image.h>
#include <muster/track/results.h>
#include <muster/train/step.h>

#include <ATen/ops/_to_copy.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace muster {

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::fit:
      return "fit";
    case Stage::validate:
      return "validate";
    case Stage::test:
      return "test";
    case Stage::predict:
      return "predict";
  }
  return "";
}

namespace {

/// More than the hooks of a batch make; the calls of the hooks that follow count on from here.
constexpr int64_t calls_of_batches = int64_t{1} << 40U;

}  // namespace

void StepState::enter_hooks(bool before) {
  loader = 0;
  batch_idx = -1;
  indices = nullptr;
  in_step = false;
  image_calls.clear();
  image_names.clear();
  const int64_t at = before ? Moment::before : Moment::after;
  moment = {.loader = at, .batch = at, .call = 0};
  phase.part = before ? Phase::Part::before : Phase::Part::after;
  group.move_to(before ? Place::before_loaders : Place::after_loaders, -1);
}

void StepState::enter_batch(int64_t loader_idx, int64_t batch, const std::vector<int64_t>& samples,
                            int64_t first) {
  loader = loader_idx;
  batch_idx = batch;
  indices = &samples;
  image_calls.clear();
  image_names.clear();
  moment = {.loader = loader_idx, .batch = batch, .call = 0};
  phase.part = Phase::Part::batch;
  phase.batch = batch;
  in_step = row != nullptr;
  group.move_to(loader_idx, (batch - first) / group.size());
}

void StepState::enter_step(int64_t last) {
  left_batch_idx = std::exchange(batch_idx, -1);
  left_indices = std::exchange(indices, nullptr);
  // After the step's batches, and the same on ranks that had none of them.
  left_moment = std::exchange(moment, {.loader = 0, .batch = last, .call = calls_of_batches});
  in_step = true;
}

void StepState::leave_step() {
  batch_idx = left_batch_idx;
  indices = left_indices;
  moment = left_moment;
}

namespace {

/// Loggers add a suffix to it and make a file's name of that.
constexpr size_t longest_image_key = 160;

/// A name that the batches of several loaders shared would mix their samples.
std::string full_name(std::string_view name, const StepState& state, char separator = '/') {
  return state.loaders > 1 && state.indices != nullptr
             ? format("{}{}dataloader_idx_{}", name, separator, state.loader)
             : std::string{name};
}

Moment next_moment(StepState& state) {
  Moment moment = state.moment;
  ++state.moment.call;
  return moment;
}

/// Which sample the n-th call for `key` shows.
int64_t sample_of_call(StepState& state, std::string_view key) {
  check(state.indices != nullptr,
        "log_image(\"{}\") in a hook without a batch needs `index`, the global index of the sample "
        "it shows: "
        "log_image(key, images, {{.index = ...}})",
        key);
  auto found = state.image_calls.find(key);
  if (found == state.image_calls.end()) {
    found = state.image_calls.emplace(std::string{key}, 0).first;
  }
  const size_t call = found->second++;
  check(call < state.indices->size(),
        "log_image(\"{}\") was called {} times for a batch of {} samples; the n-th call shows the "
        "n-th sample, so "
        "pass all images of a sample in one call, or give `index`",
        key, call + 1, state.indices->size());
  return (*state.indices)[call];
}

void show(StepState& state, std::string_view name, double value) {
  const auto found = std::find_if(state.shown.begin(), state.shown.end(),
                                  [&](const auto& item) { return item.first == name; });
  if (found == state.shown.end()) {
    state.shown.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

}  // namespace

Stage Step::stage() const { return state_->stage; }
int64_t Step::epoch() const { return state_->epoch; }
int64_t Step::global_step() const { return state_->global_step; }
int64_t Step::batch_idx() const { return state_->batch_idx; }
int64_t Step::dataloader_idx() const { return state_->loader; }
at::Device Step::device() const { return state_->device; }
int Step::rank() const { return state_->group.rank(); }
int Step::world_size() const { return state_->group.size(); }
const std::string& Step::run_dir() const { return state_->run_dir; }
Group& Step::group() { return state_->group; }

namespace {

/// The ledgers that a value goes to, each under a name of its own.
struct Targets {
  bool step = false;
  bool epoch = false;

  Targets(std::string_view name, const LogOptions& options, const StepState& state) {
    check(!options.on_step.value_or(false) || state.in_step,
          "log(\"{}\", on_step) is for the training of a batch; elsewhere a value is the epoch's",
          name);
    const bool on_step = options.on_step.value_or(state.in_step);
    epoch = options.on_epoch.value_or(!on_step);
    step = on_step && state.logging_step;
    both = on_step && epoch;
  }
  [[nodiscard]] bool none() const { return !step && !epoch; }

  /// Calls `add(ledger, name)` for each.
  template <typename Add>
  void each(std::string_view name, StepState& state, const Add& add) const {
    const std::string full = full_name(name, state);
    if (step) {
      add(*state.row, both ? full + "_step" : full);
    }
    if (epoch) {
      add(state.ledger, both ? full + "_epoch" : full);
    }
  }

 private:
  bool both = false;
};

void log_number(StepState& state, const Targets& to, std::string_view name, double value,
                const LogOptions& options) {
  const auto samples = state.indices == nullptr ? 1 : static_cast<int64_t>(state.indices->size());
  const Moment moment = next_moment(state);
  to.each(name, state, [&](Ledger& ledger, const std::string& full) {
    ledger.log(full, value, options.batch_size.value_or(samples), options.reduce_fx, moment);
  });
  if (options.prog_bar) {
    show(state, name, value);
  }
}

void log_each(StepState& state, const Targets& to, std::string_view name, const double* values,
              int64_t count, const LogOptions& options) {
  check(!options.batch_size.has_value(),
        "log(\"{}\"): each element of a 1-D tensor is one sample, so batch_size has no meaning",
        name);
  const Moment moment = next_moment(state);
  to.each(name, state, [&](Ledger& ledger, const std::string& full) {
    for (int64_t i = 0; i < count; ++i) {
      ledger.log(full, values[i], 1, options.reduce_fx, moment);
    }
  });
  if (options.prog_bar && count > 0) {
    show(state, name, values[count - 1]);
  }
}

}  // namespace

void Step::log(std::string_view name, double value, const LogOptions& options) {
  check_name("log", name);
  log_number(*state_, {name, options, *state_}, name, value, options);
}

void Step::log(std::string_view name, const at::Tensor& value, const LogOptions& options) {
  check(value.defined() && value.dim() <= 1,
        "log(\"{}\") takes a number, a tensor of no dimension or one of one dimension (a value a "
        "sample); this one "
        "has {} dimensions",
        name, value.defined() ? value.dim() : -1);
  check_name("log", name);
  check(!value.is_complex(), "log(\"{}\") takes real numbers, not complex ones", name);
  const Targets to{name, options, *state_};
  if (to.none() && !options.prog_bar) {
    return;  // no row at this step: the tensor need not even be read
  }
  const at::Tensor numbers =
      at::_to_copy(value.detach(), at::TensorOptions{}.dtype(at::kDouble).device(at::kCPU))
          .contiguous();
  const double* data = numbers.const_data_ptr<double>();
  if (value.dim() == 0) {
    log_number(*state_, to, name, *data, options);
  } else {
    log_each(*state_, to, name, data, numbers.numel(), options);
  }
}

namespace {

/// A caption an image: those given, which tell the images of the call apart, or their numbers where
/// there are several and none was given.
std::vector<std::string> captions_of(std::string_view key, size_t images,
                                     std::vector<std::string> captions) {
  check(captions.empty() || captions.size() == images,
        "log_image(\"{}\") got {} captions for {} images; give one an image, or none", key,
        captions.size(), images);
  if (captions.empty() && images == 1) {
    return {""};
  }
  for (size_t i = captions.size(); i < images; ++i) {
    captions.push_back(std::to_string(i + 1));
  }
  return captions;
}

}  // namespace

void Step::log_image(std::string_view key, const std::vector<at::Tensor>& images,
                     const ImageOptions& options) {
  check_name("log_image", key);
  check(key.size() <= longest_image_key,
        "log_image(\"{}\"): the key has {} bytes, and files are called by it: at most {} are taken",
        key, key.size(), longest_image_key);
  check(!images.empty(), "log_image(\"{}\") got no image", key);
  const auto captions = captions_of(key, images.size(), options.captions);
  const int64_t index = options.index ? *options.index : sample_of_call(*state_, key);
  check(index >= 0, "log_image(\"{}\"): the index of a sample is 0 or more, not {}", key, index);
  const Moment moment = next_moment(*state_);
  for (size_t i = 0; i < images.size(); ++i) {
    LoggedImage entry{.loader = state_->loader, .moment = moment, .place = static_cast<int64_t>(i)};
    entry.record.key = full_name(key, *state_);
    entry.record.step = state_->global_step;
    entry.record.index = index;
    entry.record.caption = captions[i];
    check(
        state_->image_names.emplace(entry.record.key, index, captions[i]).second,
        "log_image(\"{}\") shows sample {} twice with the caption \"{}\"; give them captions that "
        "differ, or another key",
        key, index, captions[i]);
    state_->spool.add(images[i], std::move(entry));
  }
}

void Step::log_table(std::string_view name, const std::vector<std::string>& columns,
                     const std::vector<std::vector<Cell>>& rows, const TableOptions& options) {
  check(is_table_name(name),
        "log_table(\"{}\"): a table is a file of its name; use the characters [A-Za-z0-9._-]",
        name);
  // A rank that has no samples of its own in a hook around the loaders has nothing to add.
  const std::vector<int64_t> none;
  const std::vector<int64_t>* indices = !options.indices.empty()     ? &options.indices
                                        : state_->indices != nullptr ? state_->indices
                                        : rows.empty()               ? &none
                                                                     : nullptr;
  check(indices != nullptr,
        "log_table(\"{}\") in a hook without a batch needs `indices`, the global index of each "
        "row's sample",
        name);
  check(rows.size() == indices->size(),
        "log_table(\"{}\") got {} rows for {} samples; a row is of one sample", name, rows.size(),
        indices->size());
  const std::string full = full_name(name, *state_, '-');
  for (size_t i = 0; i < rows.size(); ++i) {
    state_->ledger.add_row(full, columns, {.index = (*indices)[i], .cells = rows[i]});
  }
}

void Step::log_text(std::string_view key, std::string_view text) {
  check_name("log_text", key);
  state_->media().add_text(
      {.key = std::string{key}, .text = std::string{text}, .moment = next_moment(*state_)});
}

void Step::save_prediction(int64_t index, std::string_view name, const at::Tensor& image) {
  // Samples of several loaders share their indices, and may share their names.
  const std::string own = state_->loaders > 1 && state_->indices != nullptr
                              ? format("dataloader_idx_{}-{}", state_->loader, name)
                              : std::string{name};
  const auto path =
      std::filesystem::path{run_dir()} / "predictions" / prediction_file_name(index, own);
  write_file_atomically(path, encode_png(image), Durability::process);
}

}  // namespace muster
