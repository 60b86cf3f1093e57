#pragma once

#include <muster/base/exact_sum.h>
#include <muster/metrics/metric.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Builds a metric's state of 64-bit numbers in the host's byte order, and exact sums.
class StateWriter {
 public:
  void integer(int64_t value);
  void number(double value);
  void numbers(std::span<const double> values);
  void sum(const ExactSum& value) { bytes_ += value.pack(); }
  void text(std::string_view value);

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what StateWriter wrote. Error of kind `data` where that is not what the bytes hold.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_{bytes} {}

  int64_t integer();
  double number();
  std::vector<double> numbers(int64_t count);
  ExactSum sum() { return ExactSum::unpack(bytes_); }
  /// Views what the reader reads from.
  std::string_view text();

  [[nodiscard]] bool at_end() const { return bytes_.empty(); }
  /// Nothing may be left.
  void finish() const;

 private:
  std::string_view take(int64_t count);

  std::string_view bytes_;
};

/// An exact mean of numbers.
struct ExactMean {
  ExactSum sum{};
  int64_t count = 0;

  void add(double value);
  void merge(const ExactMean& other);
  /// Nothing when nothing was added.
  [[nodiscard]] std::optional<double> value() const;

  void write(StateWriter& writer) const;
  static ExactMean read(StateReader& reader);
};

/// Adds `count` >= 0 to `total`; Error of kind `usage` beyond 2^63 - 1.
void add_count(int64_t& total, int64_t count);

/// A result of one value, named "".
MetricResult single(std::optional<double> value);

}  // namespace muster
