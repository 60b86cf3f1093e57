#include <muster/base/check.h>
#include <muster/base/json_writer.h>
#include <muster/value/tensor.h>
#include <muster/value/value.h>

#include <algorithm>
#include <array>

namespace muster {

namespace {

template <typename T, typename Data>
auto& get_as(Data& data, std::string_view expected, std::string_view found) {
  auto* content = std::get_if<T>(&data);
  check(content != nullptr, "expected a value of kind {}, found {}", expected, found);
  return *content;
}

template <typename Entries>
auto* entry(Entries* entries, std::string_view key) {
  using Found = decltype(&entries->front().second);
  if (entries == nullptr) {
    return Found{nullptr};
  }
  const auto found = std::find_if(entries->begin(), entries->end(),
                                  [key](const auto& pair) { return pair.first == key; });
  return found == entries->end() ? Found{nullptr} : &found->second;
}

struct JsonVisitor {
  JsonWriter& writer;

  void operator()(std::monostate /*null*/) const { writer.null(); }
  void operator()(bool flag) const { writer.value(flag); }
  void operator()(int64_t number) const { writer.value(number); }
  void operator()(double number) const { writer.value(number); }
  void operator()(const std::string& text) const { writer.value(text); }
  void operator()(const at::Tensor& tensor) const { writer.value(describe(tensor)); }
  void operator()(const Value::List& list) const {
    writer.begin_list();
    for (const Value& item : list) {
      item.visit(*this);
    }
    writer.end_list();
  }
  void operator()(const Value::Dict& dict) const {
    writer.begin_object();
    for (const auto& [key, item] : dict) {
      writer.key(key);
      item.visit(*this);
    }
    writer.end_object();
  }
};

}  // namespace

std::string_view Value::kind() const {
  constexpr std::array<std::string_view, 8> names{"null",   "bool",   "int",  "float",
                                                  "string", "tensor", "list", "dict"};
  static_assert(names.size() == std::variant_size_v<decltype(data_)>);
  return names.at(data_.index());
}

bool Value::as_bool() const { return get_as<bool>(data_, "bool", kind()); }

int64_t Value::as_int() const { return get_as<int64_t>(data_, "int", kind()); }

double Value::as_double() const {
  return is_int() ? static_cast<double>(std::get<int64_t>(data_))
                  : get_as<double>(data_, "float", kind());
}

const std::string& Value::as_string() const& {
  return get_as<std::string>(data_, "string", kind());
}

const at::Tensor& Value::as_tensor() const& { return get_as<at::Tensor>(data_, "tensor", kind()); }

const Value::List& Value::as_list() const& { return get_as<List>(data_, "list", kind()); }

const Value::Dict& Value::as_dict() const& { return get_as<Dict>(data_, "dict", kind()); }

Value::List& Value::as_list() & { return get_as<List>(data_, "list", kind()); }

Value::Dict& Value::as_dict() & { return get_as<Dict>(data_, "dict", kind()); }

std::string Value::as_string() && { return std::as_const(*this).as_string(); }

at::Tensor Value::as_tensor() && { return std::as_const(*this).as_tensor(); }

Value::List Value::as_list() && { return std::move(as_list()); }

Value::Dict Value::as_dict() && { return std::move(as_dict()); }

const Value* Value::find(std::string_view key) const {
  return entry(std::get_if<Dict>(&data_), key);
}

Value* Value::find(std::string_view key) { return entry(std::get_if<Dict>(&data_), key); }

const Value& Value::at(std::string_view key) const {
  const Value* found = find(key);
  check(found != nullptr, ErrorKind::data, "there is no '{}' in what should be a dict that has it",
        key);
  return *found;
}

Value& Value::operator[](std::string_view key) {
  if (is_null()) {
    data_ = Dict{};
  }
  if (Value* found = find(key)) {
    return *found;
  }
  return as_dict().emplace_back(std::string{key}, Value{}).second;
}

std::string to_json(const Value& value) {
  JsonWriter writer;
  value.visit(JsonVisitor{writer});
  return writer.text();
}

bool identical(const Value& left, const Value& right) { return to_bytes(left) == to_bytes(right); }

}  // namespace muster
