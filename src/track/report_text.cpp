#include "src/track/report_parts_internal.h"

#include <muster/base/format.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>

#include <algorithm>
#include <cmath>

namespace muster::track {

std::string readable(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || (value == std::floor(value) && size < 1e15)) {
    return std::isfinite(value) ? format("{:.0f}", value) : shortest(value);
  }
  if (size >= 1000 && size < 1e9) {
    return format("{:.1f}", value);
  }
  return format("{:.4g}", value);
}

std::string shown_text(std::string_view text) { return "<bdi>" + escape_html(text) + "</bdi>"; }

std::string sample_anchor(const std::string& stage, std::string_view index) {
  return escape_html(stage + "-sample-" + std::string{index});
}

}  // namespace muster::track
