#include "invocation_internal.h"
#include "yaml_internal.h"

#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/base/streams.h>
#include <muster/cli/cli.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>
#include <muster/proc/rank_report.h>
#include <muster/proc/signals.h>
#include <muster/value/redact.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace muster {

struct Cli::State {
  Invocation invocation;
  TrainerOptions options;
  Value resolved{};  // without secrets, to be shown
  std::unique_ptr<Trainer> trainer{};
};

Cli::Cli(Invocation invocation) : state_{std::make_unique<State>()} {
  state_->options = trainer_options(invocation);
  state_->invocation = std::move(invocation);
}

Cli::~Cli() = default;

const std::string& Cli::command() const { return state_->invocation.command; }

const std::string& Cli::ckpt_path() const { return state_->invocation.ckpt_path; }

Value Cli::section(const std::string& name, const Value& defaults) const {
  return section_of(state_->invocation, name, defaults);
}

void Cli::resolve(Value model, Value data) {
  auto& state = *state_;
  state.resolved = Value::Dict{};
  state.resolved["ckpt_path"] =
      state.invocation.ckpt_path.empty() ? Value{} : Value{state.invocation.ckpt_path};
  state.resolved["trainer"] = to_value(state.options);
  state.resolved["model"] = std::move(model);
  state.resolved["data"] = std::move(data);
  state.resolved = redacted(state.resolved);
  if (!state.invocation.help && !state.invocation.print_config) {
    return;
  }
  const auto env = rank_env();
  if (!env || env->rank == 0) {
    const std::string before = state.invocation.help ? usage_text(state.invocation.program) +
                                                           "\n\nKeys and what they are now:\n"
                                                     : "";
    print_text(before + to_yaml(state.resolved));
  }
  throw EarlyExit{};
}

void Cli::resolve_without_options() {
  if (state_->resolved.is_dict()) {
    return;
  }
  const Value none = Value::Dict{};
  for (const auto* name : {"model", "data"}) {
    const Value given = section(name, none);
    check(given.is_dict(), "{}: expected a dict, found a {}", name, given.kind());
    ValuePath{name}.check_keys(given.as_dict(), {});
  }
  resolve(none, none);
}

Trainer& Cli::trainer() {
  auto& state = *state_;
  if (state.trainer == nullptr) {
    resolve_without_options();
    state.trainer = std::make_unique<Trainer>(state.options);
    // As many as there are, whoever has started them, so that the file repeats the run.
    state.resolved["trainer"]["devices"] = int64_t{state.trainer->group().size()};
    state.trainer->log_hyperparameters(state.resolved, to_yaml(state.resolved));
  }
  return *state.trainer;
}

void Cli::print(const Report& report) {
  const bool is_part = trainer().stop_signal() != 0 && command() != "fit";
  if (trainer().group().rank() != 0 || is_part) {
    return;
  }
  size_t width = 0;
  for (const auto& [name, value] : report.metrics) {
    width = std::max(width, name.size());
  }
  std::string text;
  for (const auto& [name, value] : report.metrics) {
    text += "  " + name + std::string(width - name.size() + 2, ' ') +
            (value ? shortest(*value) : "no value") + "\n";
  }
  print_text(text);
}

void Cli::end_if_stopped() {
  if (const int signal = trainer().stop_signal(); signal != 0) {
    const int code = 128 + signal;
    trainer().close(code);
    finish();
    throw EarlyExit{code};
  }
}

void Cli::fail() {
  RankFailure failure = failure_of(std::current_exception());
  const bool still_meets = failure.code == static_cast<int>(ErrorKind::rendezvous);
  if (const int signal = stop_signal(); still_meets && signal != 0) {
    report_end();
    std::fflush(nullptr);
    _exit(128 + signal);  // There is nothing to save.
  }
  if (state_->invocation.help || state_->invocation.print_config) {
    failure.source.clear();  // It is about what was to be shown, and there is no run.
  } else {
    failure.run_dir = state_->options.run_dir;
  }
  if (state_->trainer != nullptr) {
    failure.phase = state_->trainer->phase();
    state_->trainer->close(failure.code);
  }
  fail_rank(failure);
}

void Cli::finish() {
  if (state_->trainer != nullptr) {
    state_->trainer->group().finish();
    state_->trainer.reset();
  }
}

}  // namespace muster
