#include "monitor_internal.h"

#include <muster/base/check.h>
#include <muster/base/text.h>
#include <muster/train/monitor.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster {

bool is_better(double value, double other, MonitorMode mode) {
  if (std::isnan(value) || std::isnan(other)) {
    return !std::isnan(value);
  }
  return mode == MonitorMode::min ? value < other : value > other;
}

void check_reported(const Training& training, const std::string& monitor, std::string_view who) {
  std::vector<std::string> all = training.metric_names();
  if (std::find(all.begin(), all.end(), monitor) != all.end()) {
    return;
  }
  const auto nearest = std::find(all.begin(), all.end(), closest_name(monitor, all));
  if (nearest != all.end()) {
    std::rotate(all.begin(), nearest, nearest + 1);
  }
  std::string list;
  for (const auto& name : all) {
    list += (list.empty() ? "" : ", ") + name;
  }
  fail(ErrorKind::usage,
       "{} monitors {}, which neither training nor validation has logged; there {}", who, monitor,
       all.empty() ? "is no value at all" : "are " + list);
}

bool names(const Report& report, std::string_view name) {
  return std::any_of(report.metrics.begin(), report.metrics.end(),
                     [name](const auto& metric) { return metric.first == name; });
}

}  // namespace muster
