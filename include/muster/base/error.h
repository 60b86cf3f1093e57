#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace muster {

/// What went wrong, as far as a caller or a shell must tell it apart. The value is the exit code of
/// a process that ends because of it.
enum class ErrorKind : int {
  user = 1,         ///< an exception of the user's code, or a non-finite loss
  usage = 2,        ///< wrong arguments, configuration or call
  data = 65,        ///< an input file or sample that cannot be read
  rendezvous = 69,  ///< the processes could not find each other
  mismatch = 70,    ///< ranks disagree on which collective comes next
  output = 73,      ///< an output cannot be created
  io = 74,          ///< reading or writing failed, disk full
  peer_lost = 75,   ///< another rank is gone; never the root cause
};

/// The one exception that Muster throws. `what()` is the message alone: what was expected, what was
/// found, and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message,
        std::source_location where = std::source_location::current());

  [[nodiscard]] ErrorKind kind() const { return kind_; }
  [[nodiscard]] int exit_code() const { return static_cast<int>(kind_); }
  /// Where it was thrown.
  [[nodiscard]] const std::source_location& where() const { return where_; }

 private:
  ErrorKind kind_;
  std::source_location where_;
};

/// "src/train/loop.cpp:41", the way every message of Muster names a place in source.
std::string to_string(const std::source_location& where);

}  // namespace muster
