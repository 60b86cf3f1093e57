#pragma once

#include <array>
#include <utility>

namespace muster {

/// Which of two values of a monitored metric is the better one.
enum class MonitorMode { min, max };
constexpr auto enum_names(MonitorMode /*unused*/) {
  return std::array{std::pair{"min", MonitorMode::min}, std::pair{"max", MonitorMode::max}};
}

/// Whether `value` is better than `other`. NaN is worse than any number, and not better than NaN.
bool is_better(double value, double other, MonitorMode mode);

}  // namespace muster
