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

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8U | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += i <= count ? letters[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return out;
}

std::string sample_anchor(const std::string& stage, std::string_view index) {
  return escape_html(stage + "-sample-" + std::string{index});
}

}  // namespace muster::track
