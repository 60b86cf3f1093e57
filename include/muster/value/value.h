#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace muster {

/// An ordered tree of null, bool, int64, double, string, Tensor, list and dict: the one thing that
/// travels between ranks, configures a program and is saved. A plain value type; tensors share
/// their storage when copied, as everywhere in torch.
class Value {
 public:
  using List = std::vector<Value>;
  /// Keeps the order of insertion; keys are unique.
  using Dict = std::vector<std::pair<std::string, Value>>;

  Value() = default;
  Value(bool flag) : data_{flag} {}                           // NOLINT(google-explicit-constructor)
  Value(int number) : data_{static_cast<int64_t>(number)} {}  // NOLINT(google-explicit-constructor)
  Value(int64_t number) : data_{number} {}                    // NOLINT(google-explicit-constructor)
  Value(double number) : data_{number} {}                     // NOLINT(google-explicit-constructor)
  Value(std::string text) : data_{std::move(text)} {}         // NOLINT(google-explicit-constructor)
  Value(const char* text) : data_{std::string{text}} {}       // NOLINT(google-explicit-constructor)
  Value(at::Tensor tensor) : data_{std::move(tensor)} {}      // NOLINT(google-explicit-constructor)
  Value(List list) : data_{std::move(list)} {}                // NOLINT(google-explicit-constructor)
  Value(Dict dict) : data_{std::move(dict)} {}                // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
  [[nodiscard]] bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  [[nodiscard]] bool is_double() const { return std::holds_alternative<double>(data_); }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(data_); }
  [[nodiscard]] bool is_tensor() const { return std::holds_alternative<at::Tensor>(data_); }
  [[nodiscard]] bool is_list() const { return std::holds_alternative<List>(data_); }
  [[nodiscard]] bool is_dict() const { return std::holds_alternative<Dict>(data_); }
  /// "null", "bool", "int", "float", "string", "tensor", "list" or "dict", for messages.
  [[nodiscard]] std::string_view kind() const;

  /// The content; Error of kind `usage` that names both kinds when it holds something else.
  /// `as_double` takes an int too.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] int64_t as_int() const;
  [[nodiscard]] double as_double() const;
  [[nodiscard]] const std::string& as_string() const&;
  [[nodiscard]] const at::Tensor& as_tensor() const&;
  [[nodiscard]] const List& as_list() const&;
  [[nodiscard]] const Dict& as_dict() const&;
  List& as_list() &;
  Dict& as_dict() &;
  /// Of a temporary the content itself, so that `for (auto& x : from_bytes(b).as_list())` is safe.
  [[nodiscard]] std::string as_string() &&;
  [[nodiscard]] at::Tensor as_tensor() &&;
  [[nodiscard]] List as_list() &&;
  [[nodiscard]] Dict as_dict() &&;

  /// The value under `key` of a dict, or null pointer when there is none (or this is no dict).
  [[nodiscard]] const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// The value under `key`; Error of kind `data` that names it when there is none.
  [[nodiscard]] const Value& at(std::string_view key) const;
  /// The value under `key`, inserted last as null when missing; a null Value becomes a dict first.
  Value& operator[](std::string_view key);

  /// Calls `f` with the content: std::monostate, bool, int64_t, double, std::string, at::Tensor,
  /// List or Dict.
  template <typename F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), data_);
  }

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, at::Tensor, List, Dict> data_;
};

/// The value as bytes: little-endian, self-describing. Tensors are written contiguous with dtype
/// and shape, from any device.
std::string to_bytes(const Value& value);

/// Reads what `to_bytes` wrote; tensors come back on the CPU in memory of their own that torch
/// allocated. Error of kind `data` for anything else, before memory beyond the input's own size is
/// taken.
Value from_bytes(std::string_view bytes);

/// One line of JSON for people and logs; a tensor shows as its dtype and shape.
std::string to_json(const Value& value);

/// True when both are the same tree; tensors by dtype, shape and bits, doubles by bits (NaN equals
/// NaN). Takes what `to_bytes` takes.
bool identical(const Value& left, const Value& right);

}  // namespace muster
