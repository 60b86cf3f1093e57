#pragma once

#include <muster/value/fields.h>
#include <muster/value/path.h>
#include <muster/value/value.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace muster {

/// How a T becomes a Value and back. Specialise it for a type of your own that is no plain struct:
///
///   template <>
///   struct muster::ValueConverter<Colour> {
///     static muster::Value write(const Colour& colour) { return colour.hex(); }
///     static void read(const muster::Value& value, Colour& target, const muster::ValuePath& path)
///     {
///       if (!value.is_string()) path.fail_expected("a colour such as \"#ff8800\"", value);
///       target = Colour::parse(value.as_string());
///     }
///   };
///
/// For an enum, a function beside it is enough; it is written and read by name:
///
///   constexpr auto enum_names(Profile) {
///     return std::array{std::pair{"dim", Profile::dim}, std::pair{"gca", Profile::gca}};
///   }
template <typename T>
struct ValueConverter {
  static_assert(!std::is_same_v<T, T>,
                "muster: this type has no way to a Value; make it a plain struct, list its fields "
                "(muster/value/fields.h), give an enum an enum_names(E), or specialise "
                "muster::ValueConverter");
};

/// bool, integers, floating-point numbers, std::string, std::filesystem::path, at::Tensor, Value,
/// structs by their fields, and std::vector, array, pair, tuple, optional and map<std::string, T>
/// of them.
template <typename T>
Value to_value(const T& object) {
  return ValueConverter<T>::write(object);
}

/// Reads `value` over `target`. A key that a dict lacks leaves the struct's member as it was.
/// `path` is where the value stands, for messages. Error of kind `usage` that names the place:
/// another kind of value, an integer out of range, a key that the struct does not have. An int is
/// taken for a float, never the reverse. After an error `target` may be changed in part.
template <typename T>
void update_from_value(T& target, const Value& value, std::string_view path = "") {
  ValueConverter<T>::read(value, target, ValuePath{path});
}

/// A new T from `value`; what a dict lacks keeps the struct's defaults. T needs a default
/// constructor. Errors as `update_from_value`.
template <typename T>
T from_value(const Value& value, std::string_view path = "") {
  T target{};
  ValueConverter<T>::read(value, target, ValuePath{path});
  return target;
}

namespace detail {

template <typename T>
concept NamedEnum = std::is_enum_v<T> && requires(T value) {
  enum_names(value);
};

int64_t read_integer(const Value& value, int64_t lowest, uint64_t highest, const ValuePath& path);
double read_number(const Value& value, double highest, const ValuePath& path);
const Value::List& read_list(const Value& value, const ValuePath& path);
const Value::List& read_list(const Value& value, size_t size, const ValuePath& path);
const Value::Dict& read_dict(const Value& value, const ValuePath& path);
int64_t write_unsigned(uint64_t number);
/// Where `value` stands among `names`.
size_t read_name(const Value& value, const std::vector<std::string>& names, const ValuePath& path);
[[noreturn]] void fail_unnamed_enum(int64_t value);

template <typename List, size_t... I>
Value::List write_each(const List& list, std::index_sequence<I...> /*each*/) {
  Value::List values;
  values.reserve(sizeof...(I));
  (values.push_back(to_value(std::get<I>(list))), ...);
  return values;
}

template <typename List, size_t... I>
void read_each(const Value::List& values, List& target, const ValuePath& path,
               std::index_sequence<I...> /*each*/) {
  (ValueConverter<std::tuple_element_t<I, List>>::read(values[I], std::get<I>(target),
                                                       ValuePath{path, I}),
   ...);
}

}  // namespace detail

template <>
struct ValueConverter<Value> {
  static Value write(const Value& value) { return value; }
  static void read(const Value& value, Value& target, const ValuePath& /*path*/) { target = value; }
};

template <>
struct ValueConverter<bool> {
  static Value write(bool flag) { return flag; }
  static void read(const Value& value, bool& target, const ValuePath& path);
};

template <>
struct ValueConverter<std::string> {
  static Value write(const std::string& text) { return text; }
  static void read(const Value& value, std::string& target, const ValuePath& path);
};

template <>
struct ValueConverter<std::filesystem::path> {
  static Value write(const std::filesystem::path& file) { return file.string(); }
  static void read(const Value& value, std::filesystem::path& target, const ValuePath& path);
};

template <>
struct ValueConverter<at::Tensor> {
  static Value write(const at::Tensor& tensor) { return tensor; }
  static void read(const Value& value, at::Tensor& target, const ValuePath& path);
};

template <std::integral T>
struct ValueConverter<T> {
  static Value write(T number) {
    if constexpr (std::is_unsigned_v<T>) {
      return detail::write_unsigned(number);
    } else {
      return static_cast<int64_t>(number);
    }
  }
  static void read(const Value& value, T& target, const ValuePath& path) {
    using Limits = std::numeric_limits<T>;
    target = static_cast<T>(detail::read_integer(value, static_cast<int64_t>(Limits::min()),
                                                 static_cast<uint64_t>(Limits::max()), path));
  }
};

template <std::floating_point T>
struct ValueConverter<T> {
  static_assert(sizeof(T) <= sizeof(double), "muster: a Value holds no long double");
  static Value write(T number) { return static_cast<double>(number); }
  static void read(const Value& value, T& target, const ValuePath& path) {
    const auto highest = static_cast<double>(std::numeric_limits<T>::max());
    target = static_cast<T>(detail::read_number(value, highest, path));
  }
};

template <detail::NamedEnum T>
struct ValueConverter<T> {
  static Value write(T value) {
    for (const auto& [name, known] : enum_names(value)) {
      if (known == value) {
        return std::string{name};
      }
    }
    detail::fail_unnamed_enum(static_cast<int64_t>(value));
  }
  static void read(const Value& value, T& target, const ValuePath& path) {
    std::vector<std::string> names;
    for (const auto& [name, known] : enum_names(T{})) {
      names.emplace_back(name);
    }
    target = enum_names(T{})[detail::read_name(value, names, path)].second;
  }
};

template <typename T>
struct ValueConverter<std::vector<T>> {
  static Value write(const std::vector<T>& items) {
    Value::List list;
    list.reserve(items.size());
    for (const T& item : items) {
      list.push_back(to_value(item));
    }
    return list;
  }
  static void read(const Value& value, std::vector<T>& target, const ValuePath& path) {
    const Value::List& list = detail::read_list(value, path);
    std::vector<T> items;
    items.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      T item{};
      ValueConverter<T>::read(list[i], item, ValuePath{path, i});
      items.push_back(std::move(item));
    }
    target = std::move(items);
  }
};

/// A list of as many values as the array has elements.
template <typename T, size_t N>
struct ValueConverter<std::array<T, N>> {
  using Each = std::make_index_sequence<N>;
  static Value write(const std::array<T, N>& items) { return detail::write_each(items, Each{}); }
  static void read(const Value& value, std::array<T, N>& target, const ValuePath& path) {
    detail::read_each(detail::read_list(value, N, path), target, path, Each{});
  }
};

template <typename First, typename Second>
struct ValueConverter<std::pair<First, Second>> {
  using Each = std::make_index_sequence<2>;
  using Pair = std::pair<First, Second>;
  static Value write(const Pair& pair) { return detail::write_each(pair, Each{}); }
  static void read(const Value& value, Pair& target, const ValuePath& path) {
    detail::read_each(detail::read_list(value, 2, path), target, path, Each{});
  }
};

template <typename... Items>
struct ValueConverter<std::tuple<Items...>> {
  using Each = std::index_sequence_for<Items...>;
  using Tuple = std::tuple<Items...>;
  static Value write(const Tuple& items) { return detail::write_each(items, Each{}); }
  static void read(const Value& value, Tuple& target, const ValuePath& path) {
    detail::read_each(detail::read_list(value, sizeof...(Items), path), target, path, Each{});
  }
};

/// Nothing is null.
template <typename T>
struct ValueConverter<std::optional<T>> {
  static Value write(const std::optional<T>& content) {
    return content ? to_value(*content) : Value{};
  }
  static void read(const Value& value, std::optional<T>& target, const ValuePath& path) {
    if (value.is_null()) {
      target.reset();
      return;
    }
    T content = target.has_value() ? std::move(*target) : T{};
    ValueConverter<T>::read(value, content, path);
    target = std::move(content);
  }
};

template <typename T>
struct ValueConverter<std::map<std::string, T>> {
  using Map = std::map<std::string, T>;
  static Value write(const Map& map) {
    Value::Dict dict;
    dict.reserve(map.size());
    for (const auto& [key, item] : map) {
      dict.emplace_back(key, to_value(item));
    }
    return dict;
  }
  static void read(const Value& value, Map& target, const ValuePath& path) {
    Map map;
    for (const auto& [key, item] : detail::read_dict(value, path)) {
      ValueConverter<T>::read(item, map[key], ValuePath{path, std::string_view{key}});
    }
    target = std::move(map);
  }
};

template <HasFields T>
struct ValueConverter<T> {
  static Value write(const T& object) {
    Value::Dict dict;
    dict.reserve(field_count<T>);
    for_each_field(object, [&dict](std::string_view name, const auto& member) {
      dict.emplace_back(std::string{name}, to_value(member));
    });
    return dict;
  }
  static void read(const Value& value, T& target, const ValuePath& path) {
    path.check_keys(detail::read_dict(value, path), field_names<T>());
    for_each_field(target, [&](std::string_view name, auto& member) {
      if (const Value* item = value.find(name)) {
        using Member = std::remove_cvref_t<decltype(member)>;
        ValueConverter<Member>::read(*item, member, ValuePath{path, name});
      }
    });
  }
};

}  // namespace muster
