#pragma once

#include <string_view>

namespace muster {

/// A closed standard stream becomes /dev/null, so that nothing that is opened later takes its
/// place.
void open_standard_streams();

/// Before anything is printed: a closed standard stream becomes /dev/null, so that no file that is
/// opened later takes its number; and neither a reader that goes away (`| head -1`) nor a limit of
/// file sizes ends the process: writing fails instead.
void prepare_streams();

/// For ranks that share their streams, before anything is printed: each line goes out by one write,
/// longer ones in parts of 4096 bytes. A terminal stays as it is.
void write_whole_lines();

/// Prints a text on the standard output, now; Error of kind `io` where it is not taken.
void print_text(std::string_view text);

/// Once all is printed: Error of kind `io` where the standard output did not take some of it.
/// `besides` ends the message: "; the run itself is complete".
void check_streams(std::string_view besides = "");

}  // namespace muster
