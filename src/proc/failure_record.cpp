#include "src/proc/failure_record_internal.h"

#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/base/json_writer.h>

#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <exception>
#include <filesystem>

namespace muster::detail {

namespace {

constexpr std::string_view magic = "muster-failure 1\n";
constexpr size_t max_message_bytes = 20'000;
constexpr size_t max_other_bytes = 3'000;

std::string cut(const std::string& text, size_t max_bytes) {
  constexpr std::string_view mark = " ... (cut)";
  return text.size() <= max_bytes ? text : text.substr(0, max_bytes - mark.size()).append(mark);
}

std::string field(const std::string& text) { return format("{}:{},", text.size(), text); }

// Takes one "LENGTH:BYTES," off the front of `bytes`.
std::optional<std::string> take_field(std::string_view& bytes) {
  size_t length = 0;
  const char* const end = bytes.data() + bytes.size();
  const auto [after, error] = std::from_chars(bytes.data(), end, length);
  if (error != std::errc{} || after == end || *after != ':') {
    return std::nullopt;
  }
  bytes.remove_prefix(static_cast<size_t>(after - bytes.data()) + 1);
  if (length >= max_record_bytes || bytes.size() < length + 1 || bytes[length] != ',') {
    return std::nullopt;
  }
  std::string text{bytes.substr(0, length)};
  bytes.remove_prefix(length + 1);
  return text;
}

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && after == end;
}

std::string utc_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace

std::string encode(const FailureRecord& record) {
  std::string bytes{magic};
  bytes += field(std::to_string(record.code));
  bytes += field(std::to_string(record.monotonic_ns));
  bytes += field(cut(record.message, max_message_bytes));
  bytes += field(cut(record.phase, max_other_bytes));
  bytes += field(cut(record.source, max_other_bytes));
  bytes += field(cut(record.error_file, max_other_bytes));
  return bytes;
}

namespace {

// Takes a record off the front of `bytes`, which is left as it is when there is no whole one.
std::optional<FailureRecord> take_record(std::string_view& taken_from) {
  std::string_view bytes = taken_from;
  if (!bytes.starts_with(magic)) {
    return std::nullopt;
  }
  bytes.remove_prefix(magic.size());
  std::array<std::string, 6> fields;
  for (auto& text : fields) {
    auto taken = take_field(bytes);
    if (!taken) {
      return std::nullopt;
    }
    text = std::move(*taken);
  }
  FailureRecord record{
      .message = fields[2], .phase = fields[3], .source = fields[4], .error_file = fields[5]};
  if (!read_number(fields[0], record.code) || !read_number(fields[1], record.monotonic_ns) ||
      record.code < 1 || record.code > 255) {
    return std::nullopt;
  }
  taken_from = bytes;
  return record;
}

bool take_line(std::string_view& bytes, std::string_view line) {
  if (!bytes.starts_with(line)) {
    return false;
  }
  bytes.remove_prefix(line.size());
  return true;
}

// The signal's number of a whole "muster-stop 15\n", else 0.
int take_stop(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  int signal = 0;
  if (!bytes.starts_with(stop_word) || end == std::string_view::npos ||
      !read_number(std::string{bytes.substr(stop_word.size(), end - stop_word.size())}, signal) ||
      signal < 1 || signal > 64) {
    return 0;
  }
  bytes.remove_prefix(end + 1);
  return signal;
}

}  // namespace

std::optional<FailureRecord> decode(std::string_view bytes) { return take_record(bytes); }

RankWords parse_words(std::string_view bytes) {
  RankWords words;
  words.begun = take_line(bytes, begin_line);
  words.stop_signal = take_stop(bytes);
  words.ended = take_line(bytes, end_line);
  words.record = take_record(bytes);
  if (take_line(bytes, stack_line)) {
    words.stack = bytes;
  }
  return words;
}

int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string write_error_file(const std::string& run_dir, int rank, int pid,
                             const FailureRecord& record, const std::string& stack) {
  try {
    const auto path = std::filesystem::path{run_dir} / "errors" / format("rank-{}.json", rank);
    JsonWriter json{2};
    json.begin_object();
    json.key("rank").value(rank).key("pid").value(pid).key("code").value(record.code);
    json.key("phase").value(record.phase).key("message").value(record.message);
    json.key("source").value(record.source).key("time").value(utc_time());
    json.key("monotonic_ns").value(record.monotonic_ns);
    if (!stack.empty()) {
      json.key("stack").value(stack);
    }
    json.end_object();
    write_file_atomically(path, json.text() + "\n");
    return path.string();
  } catch (const std::exception&) {
    return "";  // The failure itself matters more, and is told in other ways too.
  }
}

std::optional<int> rank_of_error_file(std::string_view name) {
  constexpr std::string_view before = "rank-";
  constexpr std::string_view after = ".json";
  int rank = 0;
  if (!name.starts_with(before) || !name.ends_with(after) ||
      name.size() <= before.size() + after.size() ||
      !read_number(
          std::string{name.substr(before.size(), name.size() - before.size() - after.size())},
          rank) ||
      rank < 0) {
    return std::nullopt;
  }
  return rank;
}

}  // namespace muster::detail
