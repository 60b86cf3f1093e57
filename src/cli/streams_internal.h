#pragma once

namespace muster {

/// Before anything is printed: a closed standard stream becomes /dev/null, so that no file that is
/// opened later takes its number; and neither a reader that goes away (`| head -1`) nor a limit of
/// file sizes ends the process: writing fails instead.
void prepare_streams();

/// For ranks that share their streams, before anything is printed: each line goes out by one write,
/// longer ones in parts of 4096 bytes. A terminal stays as it is.
void write_whole_lines();

/// Once all is printed: Error of kind `io` where some of it was lost.
void check_streams();

}  // namespace muster
