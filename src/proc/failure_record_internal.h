#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::detail {

/// What a rank says of its failure, on its way to the launcher.
struct FailureRecord {
  int code = 1;              ///< the exit code it is about to end with
  int64_t monotonic_ns = 0;  ///< when it failed, by CLOCK_MONOTONIC
  std::string message{};
  std::string phase{};
  std::string source{};
  std::string error_file{};  ///< path of the error file; "" when there is none
};

/// What else a rank says through the pipe: that it has begun its work, that a signal has told it to
/// stop (with the signal's number), that it has ended its work, in this order and before a record;
/// and, as the last thing, the stack of a crash as text.
constexpr std::string_view begin_line = "muster-begin 1\n";
constexpr std::string_view stop_word = "muster-stop ";
constexpr std::string_view end_line = "muster-end 1\n";
constexpr std::string_view stack_line = "muster-stack 1\n";

/// All that a rank has said.
struct RankWords {
  bool begun = false;
  int stop_signal = 0;
  bool ended = false;
  std::optional<FailureRecord> record{};
  std::string stack{};
};
/// Reads what has come so far; what is no message ends it.
RankWords parse_words(std::string_view bytes);

/// A pipe takes this much at once, whether the launcher reads or not; encode() stays below it.
constexpr size_t max_record_bytes = 32'000;

/// Long texts are cut.
std::string encode(const FailureRecord& record);

/// Nothing when `bytes` does not begin with a whole record.
std::optional<FailureRecord> decode(std::string_view bytes);

/// Nanoseconds of CLOCK_MONOTONIC.
int64_t monotonic_ns();

/// The error file as interfaces fix it: writes run_dir/errors/rank-K.json and returns its path, or
/// "" when that fails.
std::string write_error_file(const std::string& run_dir, int rank, int pid,
                             const FailureRecord& record, const std::string& stack = "");

/// K of "rank-K.json"; nothing for another name.
std::optional<int> rank_of_error_file(std::string_view name);

}  // namespace muster::detail
