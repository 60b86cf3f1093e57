#pragma once

#include "src/comm/header_internal.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace muster::detail {

/// What a rank says about the place that is served next; one byte on the wire.
enum class Verdict : char {
  present = 'p',
  excused = 'e',    ///< it had no batch there
  had_batch = 'b',  ///< it had, and has moved on
  for_all = 'a',    ///< the place is no round, so all ranks pass it
  other_section = 's',
};

/// Remembers in which rounds of which loaders this rank had a batch: exact, a few bytes for a
/// loader whose rounds follow one another.
class Attendance {
 public:
  /// Sections and, within one, loaders and rounds come in increasing order.
  void begin_section(int64_t section, std::string_view stage, int64_t epoch);
  void add(int64_t loader, int64_t round);
  /// Drops what nobody asks for any more.
  void forget_before(int64_t section);

  /// Whether this rank, which is at a later place, may be absent from the one of `asked`.
  [[nodiscard]] Verdict verdict(const Header& asked) const;
  [[nodiscard]] size_t sections() const { return sections_.size(); }

 private:
  struct Range {
    int64_t loader;
    int64_t first;
    int64_t last;
  };
  struct Section {
    int64_t number;
    std::string stage;
    int64_t epoch;
    std::vector<Range> ranges{};
  };
  std::deque<Section> sections_{{0, "", 0}};
};

}  // namespace muster::detail
