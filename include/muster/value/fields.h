#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace muster {

/// Name and place of one member, for a class that lists its fields itself.
template <typename Class, typename Member>
struct Field {
  std::string_view name;
  Member Class::*member;
};
template <typename Class, typename Member>
Field(std::string_view, Member Class::*) -> Field<Class, Member>;

/// The fields of a class that is no plain struct, or shows only some of its members, which must be
/// declared above the list:
///
///   class Warmup {
///     int64_t steps_ = 100;
///    public:
///     static constexpr auto fields = muster::field_list(muster::Field{"steps", &Warmup::steps_});
///   };
template <typename Class, typename... Members>
constexpr auto field_list(Field<Class, Members>... fields) {
  return std::make_tuple(fields...);
}

namespace detail {

inline constexpr size_t max_fields = 16;

template <typename T>
concept ListsFields = requires {
  std::tuple_size<std::remove_cvref_t<decltype(T::fields)>>::value;
};

/// Stands for an initialiser of any member.
struct Anything {
  template <typename Member>
  operator Member() const noexcept;  // NOLINT(google-explicit-constructor)
};

/// Stands for an initialiser of a base class alone.
template <typename T>
struct BaseOf {
  template <typename Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) constexpr operator Base()
      const noexcept;  // NOLINT(google-explicit-constructor)
};

template <size_t>
using AnythingAt = Anything;

template <typename T, size_t... I>
constexpr bool takes(std::index_sequence<I...> /*count*/) {
  return requires { T{AnythingAt<I>{}...}; };
}

/// How many initialisers T takes, up to one more than the limit; an array's elements count each.
template <typename T, size_t N = max_fields + 1>
constexpr size_t count_initialisers() {
  if constexpr (N == 0 || takes<T>(std::make_index_sequence<N>{})) {
    return N;
  } else {
    return count_initialisers<T, N - 1>();
  }
}

template <typename T, size_t... Before, size_t... After>
constexpr bool is_one_member(std::index_sequence<Before...> /*before*/,
                             std::index_sequence<After...> /*after*/) {
  return requires { T{AnythingAt<Before>{}..., {}, AnythingAt<After>{}...}; };
}

/// {} in place of an initialiser stands for a whole array, so that the ones behind it are too many.
template <typename T, size_t N, size_t... I>
constexpr bool has_no_array(std::index_sequence<I...> /*positions*/) {
  return (is_one_member<T>(std::make_index_sequence<I>{}, std::make_index_sequence<N - 1 - I>{}) &&
          ...);
}

template <typename T>
constexpr size_t count_fields() {
  if constexpr (ListsFields<T>) {
    return std::tuple_size_v<std::remove_cvref_t<decltype(T::fields)>>;
  } else {
    static_assert(std::is_aggregate_v<T> && std::is_class_v<T>,
                  "muster fields: T has private members, a constructor or virtual functions; make "
                  "it a plain struct, or list its fields: static constexpr auto fields = "
                  "muster::field_list(...)");
    static_assert(std::is_default_constructible_v<T>,
                  "muster fields: every member needs a default value; a reference member cannot "
                  "have one");
    static_assert(
        !requires { T{BaseOf<T>{}}; },
        "muster fields: T has a base class; make it a member, or list the fields: "
        "static constexpr auto fields = muster::field_list(...)");
    constexpr size_t n = count_initialisers<T>();
    static_assert(has_no_array<T, n>(std::make_index_sequence<n>{}),
                  "muster fields: T has a C array; use std::array instead");
    static_assert(n <= max_fields,
                  "muster fields: T has more than 16 members; group some into a struct of their "
                  "own, or list the fields: static constexpr auto fields = "
                  "muster::field_list(...)");
    return n;
  }
}

}  // namespace detail

/// True for a plain struct (an aggregate), and for a class with `static constexpr auto fields`.
template <typename T>
concept HasFields = detail::ListsFields<T> ||
    (std::is_class_v<T>&& std::is_aggregate_v<T> && !requires { std::tuple_size<T>::value; });

/// How many fields T has. A struct with a C array, a base class or more than 16 members does not
/// compile; the message says what to do instead.
template <typename T>
inline constexpr size_t field_count = detail::count_fields<T>();

namespace detail {

/// Calls `visit` with references to all members of a plain struct, in order of declaration.
template <typename T, typename Visit>
constexpr decltype(auto) with_members(T& object, Visit&& visit) {
  constexpr size_t n = field_count<std::remove_const_t<T>>;
  if constexpr (n == 0) {
    return visit();
  } else if constexpr (n == 1) {
    auto& [a] = object;
    return visit(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = object;
    return visit(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = object;
    return visit(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = object;
    return visit(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = object;
    return visit(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = object;
    return visit(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return visit(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return visit(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return visit(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return visit(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return visit(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = object;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = object;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = object;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
}

/// Room for a T that is never made: only the addresses of its members are asked for.
template <typename T>
union Room {
  constexpr Room() : empty{} {}
  constexpr ~Room() {}  // NOLINT(modernize-use-equals-default): T's destructor must not run

  char empty;
  T object;
};
template <typename T>
inline constinit Room<T> room{};

template <typename Member>
struct Address {
  Member* member;
};
template <typename Member>
Address(Member*) -> Address<Member>;

/// The compiler's own name of this function ends in the name of the member.
template <auto Place>
consteval auto member_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  const auto is_letter = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  while (!text.empty() && !is_letter(text.back())) {
    text.remove_suffix(1);
  }
  size_t start = text.size();
  while (start > 0 && is_letter(text[start - 1])) {
    --start;
  }
  return text.substr(start);
}

template <typename T>
consteval auto member_addresses() {
  return with_members(room<T>.object,
                      [](auto&... members) { return std::make_tuple(Address{&members}...); });
}

template <typename T, size_t... I>
consteval std::array<std::string_view, sizeof...(I)> names_of(std::index_sequence<I...> /*each*/) {
  if constexpr (ListsFields<T>) {
    return {std::get<I>(T::fields).name...};
  } else {
    return {member_name<std::get<I>(member_addresses<T>())>()...};
  }
}

template <typename T>
inline constexpr auto names = names_of<T>(std::make_index_sequence<field_count<T>>{});

}  // namespace detail

/// The names of T's fields in order of declaration. They live as long as the program.
template <typename T>
constexpr const std::array<std::string_view, field_count<T>>& field_names() {
  return detail::names<T>;
}

/// Calls `f(std::string_view name, auto& member)` for each field of `object`, in order of
/// declaration.
template <typename T, typename F>
constexpr void for_each_field(T& object, F&& f) {
  using Plain = std::remove_const_t<T>;
  const auto& names = field_names<Plain>();
  if constexpr (detail::ListsFields<Plain>) {
    std::apply([&](const auto&... fields) { (f(fields.name, object.*(fields.member)), ...); },
               Plain::fields);
  } else {
    detail::with_members(object, [&](auto&... members) {
      size_t i = 0;
      (f(names[i++], members), ...);
    });
  }
}

}  // namespace muster
