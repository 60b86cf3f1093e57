#include "names_internal.h"

#include <muster/base/check.h>
#include <muster/base/text.h>

#include <algorithm>
#include <array>

namespace muster {

void check_name(std::string_view call, std::string_view name) {
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  const bool is_text =
      plain || (valid_utf8(name) == name && std::none_of(name.begin(), name.end(), [](char c) {
                  return (c >= 0 && c < ' ') || c == '\x7f';
                }));
  if (name.empty() || !is_text) {
    fail(ErrorKind::usage,
         "{}: what is logged needs a name, in UTF-8 and without control characters; found \"{}\"",
         call, valid_utf8(name));
  }
  constexpr std::array<std::string_view, 6> taken{"step",     "epoch",      "_step",
                                                  "_runtime", "_timestamp", "trainer/global_step"};
  check(std::find(taken.begin(), taken.end(), name) == taken.end(),
        "{}(\"{}\"): that is a column of the loggers' own; give it another name", call, name);
}

}  // namespace muster
