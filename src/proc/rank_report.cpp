#include <muster/base/format.h>
#include <muster/proc/rank_report.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "src/proc/error_pipe_internal.h"
#include "src/proc/failure_record_internal.h"
#include "src/proc/shared_place_internal.h"

namespace muster {

namespace {

void tell(std::string_view line) {
  if (const auto pipe = detail::inherited_error_pipe()) {
    detail::write_all(*pipe, line);
  }
}

detail::PlaceMemory* own_place() {
  static detail::PlaceMemory* const memory = detail::inherited_place();
  return memory;
}

}  // namespace

void report_begin() { tell(detail::begin_line); }

void report_stop(int signal) {
  static const bool told = (tell(format("{}{}\n", detail::stop_word, signal)), true);
  static_cast<void>(told);
}

int launchers_stop_signal() {
  const detail::PlaceMemory* const memory = own_place();
  return memory != nullptr ? static_cast<int>(memory->stop_signal.load()) : 0;
}

void report_end() { tell(detail::end_line); }

void report_place(const RankPlace& place) {
  detail::PlaceMemory* const memory = own_place();
  if (memory == nullptr) {
    return;
  }
  std::array<uint64_t, 2> what{};
  std::memcpy(what.data(), place.what.data(), std::min(place.what.size(), sizeof what - 1));
  constexpr auto order = std::memory_order_relaxed;
  memory->epoch.store(place.epoch, order);
  memory->step.store(place.step, order);
  memory->batch.store(place.batch, order);
  memory->what[1].store(what[1], order);
  memory->what[0].store(what[0], order);
}

}  // namespace muster
