#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Lightning's pattern of a checkpoint's name: "{epoch}-{val/loss:.3f}".
class FilePattern {
 public:
  using Metric = std::function<std::optional<double>(std::string_view name)>;

  /// With `insert_names` a field becomes "epoch=3", else "3". Error of kind `usage` for a pattern
  /// that is empty, cannot be read, or gives the name of a link ("last", "best").
  FilePattern(std::string_view pattern, bool insert_names);

  /// The name at a moment, of characters [A-Za-z0-9._=-]: others become '_'. A metric without a
  /// value is 0.
  [[nodiscard]] std::string name(int64_t epoch, int64_t step, const Metric& metric) const;

 private:
  /// A literal text, then the field `name` unless that is "".
  struct Part {
    std::string text{};
    std::string name{};
    std::string format{};
  };
  std::vector<Part> parts_{};
};

}  // namespace muster
