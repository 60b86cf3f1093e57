#include "tests/metrics/ranks.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <variant>

namespace muster::test {

namespace {

std::string bits(double value) { return std::to_string(std::bit_cast<uint64_t>(value)); }

std::string text_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return "'" + *text + "'";
  }
  const auto* number = std::get_if<double>(&cell);
  return number != nullptr ? bits(*number) : "-";
}

}  // namespace

std::string fingerprint(const MetricResult& result) {
  std::string text;
  for (const auto& [name, value] : result.values) {
    text += name + "=" + (value ? bits(*value) : "-") + "\n";
  }
  for (const auto& table : result.tables) {
    text += "table " + table.name + "\n";
    for (const auto& column : table.columns) {
      text += column + ",";
    }
    for (const auto& row : table.rows) {
      text += "\n" + std::to_string(row.index);
      for (const auto& cell : row.cells) {
        text += "," + text_of(cell);
      }
    }
  }
  return text;
}

}  // namespace muster::test
