#pragma once

#include <muster/base/error.h>
#include <muster/base/format.h>

#include <type_traits>

namespace muster {

namespace detail {

/// A format string that also remembers where it was written.
template <typename... Args>
struct Message {
  template <typename Text>
  requires std::is_convertible_v<const Text&, fmt::string_view>
  consteval Message(const Text& text,  // NOLINT(google-explicit-constructor): a literal becomes one
                    std::source_location place = std::source_location::current())
      : pattern{text}, where{place} {}

  fmt::format_string<Args...> pattern;
  std::source_location where;
};

[[noreturn]] void throw_error(ErrorKind kind, fmt::string_view pattern, fmt::format_args args,
                              const std::source_location& where);

}  // namespace detail

/// Throws Error of `kind`; the pattern is fmt's and is checked when compiled.
template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, detail::Message<std::type_identity_t<Args>...> message,
                       Args&&... args) {
  detail::throw_error(kind, message.pattern, fmt::make_format_args(args...), message.where);
}

/// Throws Error of `kind` unless `ok`. The arguments are formatted only when it throws.
template <typename... Args>
void check(bool ok, ErrorKind kind, detail::Message<std::type_identity_t<Args>...> message,
           Args&&... args) {
  if (!ok) [[unlikely]] {
    detail::throw_error(kind, message.pattern, fmt::make_format_args(args...), message.where);
  }
}

/// check of kind `usage`: the caller did what the contract forbids.
template <typename... Args>
void check(bool ok, detail::Message<std::type_identity_t<Args>...> message, Args&&... args) {
  if (!ok) [[unlikely]] {
    detail::throw_error(ErrorKind::usage, message.pattern, fmt::make_format_args(args...),
                        message.where);
  }
}

}  // namespace muster
