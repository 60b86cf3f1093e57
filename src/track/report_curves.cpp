#include "src/track/report_parts_internal.h"

#include <muster/base/format.h>
#include <muster/base/json_writer.h>

#include <algorithm>

namespace muster::track {

namespace {

constexpr size_t most_curves = 100;
constexpr size_t most_buckets = 300;
constexpr size_t most_dots = 60;
// The drawing's own units.
constexpr double width = 320;
constexpr double height = 120;
constexpr double margin = 6;

using Point = std::pair<double, double>;

/// Long curves keep the lowest and the highest of each stretch, so that no peak is lost.
std::vector<Point> thinned(const std::map<double, double>& points) {
  std::vector<Point> all{points.begin(), points.end()};
  if (all.size() <= 2 * most_buckets) {
    return all;
  }
  std::vector<Point> kept{all.front()};
  const auto by_value = [](const Point& a, const Point& b) { return a.second < b.second; };
  for (size_t i = 0; i < most_buckets; ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / most_buckets);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(all.size() * (i + 1) / most_buckets);
    const auto [low, high] = std::minmax_element(begin, end, by_value);
    kept.push_back(*std::min(low, high));
    kept.push_back(*std::max(low, high));
  }
  kept.push_back(all.back());
  return kept;
}

std::string curve_html(const ReportCurve& curve) {
  const auto points = thinned(curve.points);
  const auto by_value = [](const Point& a, const Point& b) { return a.second < b.second; };
  const auto [low, high] = std::minmax_element(points.begin(), points.end(), by_value);
  // Halves, since the difference of two doubles may not be one.
  const double half_range = high->second / 2 - low->second / 2;
  const double half_span = points.back().first / 2 - points.front().first / 2;
  const auto x = [&](const Point& p) {
    return margin + (width - 2 * margin) * (p.first / 2 - points.front().first / 2) / half_span;
  };
  const auto y = [&](const Point& p) {
    const double part = half_range > 0 ? (p.second / 2 - low->second / 2) / half_range : 0.5;
    return height - margin - (height - 2 * margin) * part;
  };
  std::string line;
  std::string dots;
  for (const auto& point : points) {
    line += format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x(point), y(point));
    if (points.size() <= most_dots) {
      dots +=
          format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5"><title>step {}: {}</title></circle>)",
                 x(point), y(point), readable(point.first), shortest(point.second));
    }
  }
  return format(
      R"(<figure class="curve"><figcaption><span>{}</span><b title="{}">{}</b></figcaption>)"
      R"(<svg viewBox="0 0 {} {}" role="img" aria-label="from {} to {}">)"
      R"(<polyline points="{}"/>{}</svg>)"
      "<p class=\"axis\"><span>step {} to {}</span><span>{} to {}</span></p></figure>\n",
      shown_text(curve.name), shortest(points.back().second), readable(points.back().second), width,
      height, readable(points.front().second), readable(points.back().second), line, dots,
      readable(points.front().first), readable(points.back().first), readable(low->second),
      readable(high->second));
}

}  // namespace

std::string curves_part(const std::vector<ReportCurve>& curves) {
  if (curves.empty()) {
    return "";
  }
  std::string out = "<section id=\"curves\"><h2>Curves</h2><div class=\"curves\">\n";
  const size_t shown = std::min(curves.size(), most_curves);
  for (size_t i = 0; i < shown; ++i) {
    out += curve_html(curves[i]);
  }
  out += "</div>";
  if (shown < curves.size()) {
    out += format(R"(<p class="note">{} more are in <code>metrics.csv</code>.</p>)",
                  curves.size() - shown);
  }
  return out + "</section>\n";
}

}  // namespace muster::track
