#pragma once

#include <muster/cli/data_module.h>
#include <muster/train/trainer.h>
#include <muster/value/convert.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace muster {

struct Invocation;

/// Thrown to end a program early and well, past the user's code; `muster::run` returns the code.
struct EarlyExit {
  int code = 0;
};

/// What a program is given: its command, its options from YAML and arguments, and a Trainer that is
/// set up.
class Cli {
 public:
  explicit Cli(Invocation invocation);
  Cli(const Cli&) = delete;
  Cli& operator=(const Cli&) = delete;
  ~Cli();

  /// The sections `model` and `data` as plain structs; keys that nobody gave keep the struct's
  /// defaults. Ends the program here for --help and --print_config. Call it once, first; a program
  /// without options of its own need not. Errors of kind `usage` name the key, what was expected
  /// and the closest name.
  template <typename ModelOptions, typename DataOptions>
  std::pair<ModelOptions, DataOptions> options() {
    std::pair<ModelOptions, DataOptions> options;
    update_from_value(options.first, section("model", to_value(options.first)), "model");
    update_from_value(options.second, section("data", to_value(options.second)), "data");
    resolve(to_value(options.first), to_value(options.second));
    return options;
  }

  /// "fit", "validate", "test" or "predict".
  [[nodiscard]] const std::string& command() const;
  /// As it was given, for the Trainer; "" when it was not.
  [[nodiscard]] const std::string& ckpt_path() const;
  /// Made at the first call, when the ranks of the job meet.
  Trainer& trainer();

  /// Runs the command: fits, from the checkpoint or the weights of --ckpt_path where it is given;
  /// or loads those weights, then validates, tests or predicts with the loader of the stage. Prints
  /// the metrics on rank 0.
  /// A training that a signal ended (SIGTERM, SIGINT, SIGHUP) has saved a checkpoint; it, or an
  /// evaluation, ends the program with 128 + the signal's number. What goes wrong in it ends the
  /// process as by `fail`, before the module and its data are destroyed.
  template <typename S, typename O>
  void run(Module<S, O>& module, const DataModule<S>& data) {
    resolve_without_options();
    try {
      trainer().on_failure([this] { fail(); });
      const std::string& from = ckpt_path();
      if (command() == "fit") {
        const LoaderList<S> val =
            data.val_dataloader ? LoaderList<S>{*data.val_dataloader} : LoaderList<S>{};
        print(trainer().fit(module, wanted(data.train_dataloader), val, from));
      } else if (command() == "validate") {
        print(trainer().validate(module, wanted(data.val_dataloader), from));
      } else if (command() == "test") {
        print(trainer().test(module, wanted(data.test_dataloader), from));
      } else {
        trainer().predict(module, wanted(data.predict_dataloader), ReturnPredictions::none, from);
      }
      end_if_stopped();
    } catch (const EarlyExit&) {
      throw;
    } catch (...) {
      fail();
    }
  }

  /// In a catch block: ends the process for the exception that is being handled. One message with
  /// what the run was doing, an error file, the loggers closed as failed, the error's exit code.
  [[noreturn]] void fail();

  /// Attends the other ranks' collectives until all are done, and closes the loggers.
  void finish();

 private:
  template <typename S>
  const Loader<S>& wanted(const std::optional<Loader<S>>& loader) const {
    check(loader.has_value(), "the program has no data for {}", command());
    return *loader;
  }
  [[nodiscard]] Value section(const std::string& name, const Value& defaults) const;
  void resolve(Value model, Value data);
  /// For a program that has not called `options`.
  void resolve_without_options();
  void print(const Report& report);
  /// Ends the program, well, with the exit code of the signal that has ended its stage.
  void end_if_stopped();

  struct State;
  std::unique_ptr<State> state_;
};

/// The main function of a program:
///
///   PROGRAM fit|validate|test|predict [--config FILE.yaml] [--ckpt_path PATH|best|last]
///   [--print_config] [--help]
///           [--trainer.KEY VALUE ...] [--model.KEY VALUE ...] [--data.KEY VALUE ...]
///           [--devices N] [--run_dir DIR] [--seed N] [--threads N|auto]
///
/// Starts `--devices` ranks of this very program, unless a launcher has (`muster launch`,
/// torchrun), and runs `program` on each. What it throws ends the job: one message, an error file
/// in run_dir/errors, and the error's exit code. Call it first thing in main, before torch is
/// touched.
///
/// `trainer_defaults` are what the keys of `trainer` are where nobody gives them.
int run(int argc, char** argv, const std::function<void(Cli&)>& program,
        const TrainerOptions& trainer_defaults = {});

}  // namespace muster
