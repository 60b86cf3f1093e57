#include "src/comm/attendance_internal.h"

#include <algorithm>
#include <utility>

namespace muster::detail {

void Attendance::begin_section(int64_t section, std::string_view stage, int64_t epoch) {
  sections_.push_back({section, std::string{stage}, epoch});
}

void Attendance::add(int64_t loader, int64_t round) {
  auto& ranges = sections_.back().ranges;
  const bool continues =
      !ranges.empty() && ranges.back().loader == loader && round <= ranges.back().last + 1;
  if (continues) {
    ranges.back().last = round;
  } else {
    ranges.push_back({loader, round, round});
  }
}

void Attendance::forget_before(int64_t section) {
  // The current section stays: rounds are still being added to it.
  while (sections_.size() > 1 && sections_.front().number < section) sections_.pop_front();
}

Verdict Attendance::verdict(const Header& asked) const {
  const auto section = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section& s) { return s.number == asked.section; });
  if (section == sections_.end()) return Verdict::for_all;
  if (section->stage != stage_of(asked) || section->epoch != asked.epoch) {
    return Verdict::other_section;
  }
  if (asked.round < 0) return Verdict::for_all;
  const auto& ranges = section->ranges;
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), asked, [](const Header& place, const Range& range) {
        return std::pair{place.loader, place.round} < std::pair{range.loader, range.first};
      });
  if (after == ranges.begin()) return Verdict::excused;
  const auto& range = *std::prev(after);
  return range.loader == asked.loader && asked.round <= range.last ? Verdict::had_batch
                                                                   : Verdict::excused;
}

}  // namespace muster::detail
