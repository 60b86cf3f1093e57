#include "output.h"
#include "terminal.h"

#include <muster/base/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::app {

namespace {

constexpr size_t most_worst = 10;
constexpr size_t widest_label = 30;
constexpr std::string_view unknown_region = "unknown region";

std::string value_cells(const std::optional<ErrorValues>& values) {
  if (!values) {
    return format("{:>12}{:>12}{:>12}{:>12}", "-", "-", "-", "-");
  }
  return format(" {:>11.4f} {:>11.6f} {:>11.4f} {:>11.4f}", values->sad, values->mse, values->grad,
                values->conn);
}

std::string value_heads() {
  return format("{:>12}{:>12}{:>12}{:>12}", "SAD", "MSE", "Grad", "Conn");
}

/// Lines of a label and cells that are as wide in every line.
class Table {
 public:
  /// `least`: columns that labels take at least, so that tables stand in line.
  Table(std::string_view label, std::string cells, size_t least = 0) : least_{least} {
    add(label, std::move(cells));
  }

  void add(std::string_view label, std::string cells) {
    lines_.emplace_back(shortened(printable(label), widest_label), std::move(cells));
  }

  [[nodiscard]] std::string text() const {
    size_t width = least_;
    for (const auto& [label, cells] : lines_) {
      width = std::max(width, columns_of(label));
    }
    std::string out;
    for (const auto& [label, cells] : lines_) {
      out.append("  ").append(label).append(width - columns_of(label), ' ').append(cells) += '\n';
    }
    return out;
  }

 private:
  size_t least_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

std::string mean_cells(const std::optional<RegionMean>& mean) {
  const RegionMean shown = mean.value_or(RegionMean{});
  return format("{:>8}", shown.images) + value_cells(shown.values);
}

template <typename MeanOf>
std::string means_text(const MattingReport& report, std::string_view region, MeanOf mean_of) {
  Table table{region, format("{:>8}", "images") + value_heads(),
              report.has_trimaps ? unknown_region.size() : 0};
  if (report.datasets.size() > 1) {
    for (const auto& [name, means] : report.datasets) {
      table.add(name.empty() ? "(no folder)" : name, mean_cells(mean_of(means)));
    }
  }
  table.add("all images", mean_cells(mean_of(report.mean)));
  return table.text() + "\n";
}

std::string worst_text(const MattingReport& report) {
  Table table{"worst by SAD", value_heads()};
  const auto order = report.worst_first();
  for (size_t i = 0; i < std::min(order.size(), most_worst); ++i) {
    const auto& [dataset, name, row] = report.rows[order[i]];
    const auto region = report.has_trimaps ? row.unknown : std::optional{row.all};
    table.add(dataset.empty() ? name : format("{}/{}", dataset, name),
              value_cells(region ? region->values : std::nullopt));
  }
  return table.text();
}

}  // namespace

std::string matting_table(const MattingReport& report) {
  const size_t images = report.rows.size();
  std::string text =
      format("{} image{}, profile {}\n\n", images, images == 1 ? "" : "s", report.profile);
  if (report.has_trimaps) {
    text += means_text(report, unknown_region, [](const Means& means) { return means.unknown; });
  }
  text += means_text(report, "whole image",
                     [](const Means& means) { return std::optional{means.all}; });
  if (images > 1) {
    text += worst_text(report);
  } else {
    text.pop_back();
  }
  return text;
}

}  // namespace muster::app
