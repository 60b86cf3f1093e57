#include <muster/base/check.h>
#include <muster/metrics/aggregate.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace muster {

namespace {

constexpr size_t word = 8;

std::string pack_count(int64_t count) {
  std::string bytes(word, '\0');
  std::memcpy(bytes.data(), &count, word);
  return bytes;
}

int64_t unpack_count(std::string_view& bytes) {
  check(bytes.size() >= word, ErrorKind::data, "a metric's state has {} bytes where a count has {}",
        bytes.size(), word);
  int64_t count = 0;
  std::memcpy(&count, bytes.data(), word);
  bytes.remove_prefix(word);
  return count;
}

void check_end(std::string_view bytes) {
  check(bytes.empty(), ErrorKind::data, "a metric's state has {} bytes too many", bytes.size());
}

void add_count(int64_t& total, int64_t count) {
  check(count <= std::numeric_limits<int64_t>::max() - total,
        "a metric's total weight exceeds 2^63 - 1");
  total += count;
}

MetricResult single(std::optional<double> value) { return {.values = {{"", value}}}; }

}  // namespace

void Mean::update(double value, int64_t weight) {
  check(weight >= 0, "a weight counts samples and is 0 or more, not {}", weight);
  add_count(weight_, weight);
  sum_.add(value, weight);
}

void Mean::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

std::optional<double> Mean::value() const {
  return weight_ > 0 ? std::optional{sum_.mean(weight_)} : std::nullopt;
}

std::string Mean::state() { return weight_ > 0 ? pack_count(weight_) + sum_.pack() : ""; }

void Mean::merge(std::string_view state) {
  const int64_t weight = unpack_count(state);
  const ExactSum sum = ExactSum::unpack(state);
  check_end(state);
  add_count(weight_, weight);
  sum_.merge(sum);
}

MetricResult Mean::compute() { return single(value()); }

void Mean::reset() {
  sum_ = {};
  weight_ = 0;
}

void Sum::update(double value) {
  sum_.add(value);
  ++count_;
}

void Sum::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

std::optional<double> Sum::value() const {
  return count_ > 0 ? std::optional{sum_.sum()} : std::nullopt;
}

std::string Sum::state() { return count_ > 0 ? pack_count(count_) + sum_.pack() : ""; }

void Sum::merge(std::string_view state) {
  const int64_t count = unpack_count(state);
  const ExactSum sum = ExactSum::unpack(state);
  check_end(state);
  add_count(count_, count);
  sum_.merge(sum);
}

MetricResult Sum::compute() { return single(value()); }

void Sum::reset() {
  sum_ = {};
  count_ = 0;
}

double lower(double one, double two) {
  if (std::isnan(one) || std::isnan(two)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return one < two || (one == two && std::signbit(one)) ? one : two;
}

double upper(double one, double two) {
  if (std::isnan(one) || std::isnan(two)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return one > two || (one == two && !std::signbit(one)) ? one : two;
}

void Extreme::update(double value) { value_ = prefer_(value_.value_or(value), value); }

void Extreme::update(std::span<const double> values) {
  for (const double value : values) {
    update(value);
  }
}

std::string Extreme::state() { return value_ ? pack_count(std::bit_cast<int64_t>(*value_)) : ""; }

void Extreme::merge(std::string_view state) {
  const auto value = std::bit_cast<double>(unpack_count(state));
  check_end(state);
  update(value);
}

MetricResult Extreme::compute() { return single(value_); }

void Extreme::reset() { value_.reset(); }

}  // namespace muster
