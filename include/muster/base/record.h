#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace muster {

/// The final values of an epoch by name, in an order that does not depend on the number of ranks:
/// that of the batches that named them first, and by name within a hook around them. No value: no
/// sample contributed (absent is not zero).
struct Report {
  std::string stage{};  ///< fit, validate, test or predict
  int64_t epoch = 0;    ///< counts from 0
  int64_t step = 0;     ///< optimizer steps taken so far: trainer/global_step
  int64_t samples = 0;  ///< samples seen in the epoch, each once
  std::vector<std::pair<std::string, std::optional<double>>> metrics{};

  /// The value called `name`, or nothing when there is none or no sample contributed.
  [[nodiscard]] std::optional<double> get(const std::string& name) const;
};

/// One image as it stands in results.json, and where its PNG lies.
struct ImageRecord {
  std::string key{};
  int64_t step = 0;   ///< trainer/global_step of the row that shows it
  int64_t index = 0;  ///< global index of the sample shown
  std::string caption{};
  int64_t width = 0;     ///< pixels
  int64_t height = 0;    ///< pixels
  std::string sha256{};  ///< of the PNG bytes, 64 hexadecimal digits
  std::string file{};    ///< path of the PNG while the run goes on; not in results.json
};

/// A cell: no value, text or a number.
using Cell = std::variant<std::monostate, std::string, double>;

/// Per-sample rows. The first column of what is written is the sample's global index, and rows rise
/// by it.
struct Table {
  struct Row {
    int64_t index = 0;
    std::vector<Cell> cells{};
  };
  std::string stage{};  ///< fit, validate, test or predict
  std::string name{};
  std::vector<std::string> columns{};  ///< without `index`; text columns stand before numbers
  std::vector<Row> rows{};
};

}  // namespace muster
