#pragma once

#include <exception>
#include <string>

namespace muster {

/// Why a rank ends, for the launcher, the error file and the user.
struct RankFailure {
  /// Exit code; those of ErrorKind.
  int code = 1;
  std::string message{};
  /// What the rank was doing: "validate, epoch 0, batch 3".
  std::string phase{};
  /// Place in source, "src/io/png.cpp:41"; "" when unknown.
  std::string source{};
  /// The error file goes to run_dir/errors; "" takes the launcher's run_dir, if it gave one.
  std::string run_dir{};
};

/// Code, message and source of an exception: those of an Error, code 1 for any other.
RankFailure describe_failure(const std::exception_ptr& error);

/// How a rank ends when it fails, from any thread and in whatever state: writes errors/rank-K.json
/// (rank, pid, code, phase, message, source, time, monotonic_ns), tells the launcher through
/// MUSTER_ERROR_FD, flushes stdio and calls _exit. No destructor runs, so that no pending
/// collective can hold it up. Only a process without Muster's launcher prints the message itself;
/// what fails on the way is passed over.
[[noreturn]] void fail_rank(const RankFailure& failure);

/// Makes std::terminate, on whichever thread, report its exception as fail_rank does, then abort
/// (SIGABRT), and crashes (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) show the stack of their thread
/// before they end the process: in the error file, or on stderr without Muster's launcher.
void install_terminate_handler();

/// Ties this process to the launcher, if Muster's launcher started it (else does nothing): it is
/// killed when the launcher is gone, the descriptors that it inherited are not passed on, and its
/// name is argv[0]'s. Call it early, once; it starts a thread that sleeps.
void attach_to_launcher();

/// Removes error files that an earlier command left under run_dir, before ranks start. Never fails.
void clear_error_files(const std::string& run_dir);
/// The same for a job whose ranks are already running: each calls it and removes its own, rank 0
/// also those of ranks that this job does not have, so that none removes what another just wrote.
void clear_error_files(const std::string& run_dir, int rank, int world_size);

}  // namespace muster
