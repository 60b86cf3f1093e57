#include <muster/base/record.h>

#include <algorithm>

namespace muster {

std::optional<double> Report::get(const std::string& name) const {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const auto& metric) { return metric.first == name; });
  return found == metrics.end() ? std::nullopt : found->second;
}

}  // namespace muster
