#include <muster/base/check.h>

#include "src/metrics/state_internal.h"

#include <cstring>
#include <limits>

namespace muster {

namespace {

constexpr int64_t word = 8;

}  // namespace

void StateWriter::integer(int64_t value) {
  char bytes[word];
  std::memcpy(bytes, &value, word);
  bytes_.append(bytes, word);
}

void StateWriter::number(double value) { numbers({&value, 1}); }

void StateWriter::numbers(std::span<const double> values) {
  const auto bytes = std::as_bytes(values);
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void StateWriter::text(std::string_view value) {
  integer(static_cast<int64_t>(value.size()));
  bytes_ += value;
}

std::string_view StateReader::text() {
  const int64_t size = integer();
  check(size >= 0 && size <= static_cast<int64_t>(bytes_.size()), ErrorKind::data,
        "a state ends after {} bytes where a text of {} should follow", bytes_.size(), size);
  const auto taken = bytes_.substr(0, static_cast<size_t>(size));
  bytes_.remove_prefix(taken.size());
  return taken;
}

std::string_view StateReader::take(int64_t count) {
  const auto left = static_cast<int64_t>(bytes_.size()) / word;
  check(count >= 0 && count <= left, ErrorKind::data,
        "a metric's state ends after {} bytes where {} numbers should follow", bytes_.size(),
        count);
  const auto taken = bytes_.substr(0, static_cast<size_t>(count * word));
  bytes_.remove_prefix(taken.size());
  return taken;
}

int64_t StateReader::integer() {
  int64_t value = 0;
  std::memcpy(&value, take(1).data(), word);
  return value;
}

double StateReader::number() { return numbers(1).front(); }

std::vector<double> StateReader::numbers(int64_t count) {
  const auto bytes = take(count);
  std::vector<double> values(static_cast<size_t>(count));
  if (count > 0) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return values;
}

void StateReader::finish() const {
  check(bytes_.empty(), ErrorKind::data, "a metric's state has {} bytes too many", bytes_.size());
}

void ExactMean::add(double value) {
  sum.add(value);
  add_count(count, 1);
}

void ExactMean::merge(const ExactMean& other) {
  add_count(count, other.count);
  sum.merge(other.sum);
}

std::optional<double> ExactMean::value() const {
  return count > 0 ? std::optional{sum.mean(count)} : std::nullopt;
}

void ExactMean::write(StateWriter& writer) const {
  writer.integer(count);
  writer.sum(sum);
}

ExactMean ExactMean::read(StateReader& reader) {
  const int64_t count = reader.integer();
  check(count >= 0, ErrorKind::data, "a metric's state has the count {}", count);
  return {.sum = reader.sum(), .count = count};
}

void add_count(int64_t& total, int64_t count) {
  check(count <= std::numeric_limits<int64_t>::max() - total,
        "a metric's total weight exceeds 2^63 - 1");
  total += count;
}

MetricResult single(std::optional<double> value) { return {.values = {{"", value}}}; }

}  // namespace muster
