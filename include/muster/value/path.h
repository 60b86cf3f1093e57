#pragma once

#include <muster/value/value.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// Where a value stands in a tree ("model.layers[2].size"), for messages. Built on the stack, so
/// that a path costs nothing until it is asked for; refers to its parent and its name, which must
/// outlive it.
class ValuePath {
 public:
  explicit ValuePath(std::string_view root = "") : name_{root} {}
  ValuePath(const ValuePath& parent, std::string_view name) : parent_{&parent}, name_{name} {}
  ValuePath(const ValuePath& parent, size_t index) : parent_{&parent}, index_{index} {}
  ValuePath(const ValuePath&) = default;
  ValuePath& operator=(const ValuePath&) = delete;

  [[nodiscard]] std::string text() const;

  /// Throws Error of kind `usage`: "model.lr: expected a float, found the string "fast"".
  [[noreturn]] void fail_expected(std::string_view expected, const Value& found) const;

  /// Error of kind `usage` when `dict` has a key that is none of `names`; it names the nearest one.
  void check_keys(const Value::Dict& dict, std::span<const std::string_view> names) const;

 private:
  const ValuePath* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
};

}  // namespace muster
