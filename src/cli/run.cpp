#include "invocation_internal.h"

#include <muster/base/check.h>
#include <muster/base/streams.h>
#include <muster/base/thread_pool.h>
#include <muster/cli/cli.h>
#include <muster/proc/launch.h>
#include <muster/proc/rank_env.h>
#include <muster/proc/rank_failure.h>
#include <muster/proc/rank_report.h>
#include <muster/proc/signals.h>
#include <muster/train/environment.h>

#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <vector>

namespace muster {

namespace {

/// Tells the user of cores that stay idle, since one thread a rank is the default.
void mention_idle_cores(const TrainerOptions& options, int64_t ranks, bool trains) {
  const int cores = cores_for_rank(1);
  const int64_t busy = options.threads.count * ranks;
  if (options.threads.count > 0 && busy < cores) {
    std::fprintf(
        stderr,
        "muster: %lld of %d cores compute; --devices %d uses all of them%s, --threads auto "
        "too but may change the last bits\n",
        static_cast<long long>(busy), cores, cores,
        trains ? " (a step then has as many batches)" : " with the same results");
  }
}

/// What is left of the program once this process is a rank, or alone.
void run_rank(const Invocation& invocation, const TrainerOptions& options,
              const std::optional<RankEnv>& env, const std::function<void(Cli&)>& program) {
  attach_to_launcher();
  install_terminate_handler();
  report_begin();
  const int64_t ranks = env ? env->world_size : 1;
  check(!env || options.devices == 1 || options.devices == ranks,
        "--devices {} contradicts WORLD_SIZE={} of the launcher; leave --devices out",
        options.devices, ranks);
  set_compute_threads(options.threads.count);
  seed_everything(options.seed);
  const bool only_shows = invocation.help || invocation.print_config;
  if (!only_shows) {
    clear_error_files(options.run_dir, env ? env->rank : 0, static_cast<int>(ranks));
  }
  if (!only_shows && (!env || env->rank == 0)) {
    mention_idle_cores(options, env ? env->local_world_size : 1, invocation.command == "fit");
  }
  install_stop_signals();
  Cli cli{invocation};
  try {
    program(cli);
    cli.finish();
    check_streams("; the run itself is complete");
  } catch (const EarlyExit&) {
    throw;
  } catch (...) {
    cli.fail();  // While it still knows what it was doing.
  }
}

}  // namespace

RankFailure failure_of(const std::exception_ptr& error) {
  RankFailure failure = describe_failure(error);
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& from_torch) {
    failure.message = from_torch.what_without_backtrace();
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is described already
  }
  return failure;
}

int run(int argc, char** argv, const std::function<void(Cli&)>& program,
        const TrainerOptions& trainer_defaults) {
  prepare_streams();
  const std::vector<std::string> arguments(argv, argv + argc);
  RankFailure failure;
  try {
    const std::string name = std::filesystem::path{arguments.at(0)}.filename().string();
    Invocation invocation = parse_arguments(name, {arguments.begin() + 1, arguments.end()});
    invocation.trainer_defaults = trainer_defaults;
    const TrainerOptions options = trainer_options(invocation);
    failure.run_dir = options.run_dir;
    const auto env = rank_env();
    if (env && env->world_size > 1) {
      write_whole_lines();
    }
    if (!env && options.devices > 1 && !invocation.help && !invocation.print_config) {
      clear_error_files(options.run_dir);
      return launch(arguments, {.ranks = static_cast<int>(options.devices),
                                .self_exe = true,
                                .run_dir = options.run_dir});
    }
    run_rank(invocation, options, env, program);
    report_end();
    return 0;
  } catch (const EarlyExit& exit) {
    report_end();
    return exit.code;
  } catch (...) {
    const std::string run_dir = failure.run_dir;
    failure = failure_of(std::current_exception());
    failure.run_dir = run_dir;
  }
  fail_rank(failure);
}

}  // namespace muster
