#include "output.h"
#include "terminal.h"

#include <muster/base/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace muster::app {

namespace {

constexpr size_t most_worst = 10;
constexpr size_t widest_label = 40;

std::string padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, columns_of(text)), ' ');
}

std::string value_cells(const std::optional<ErrorValues>& values) {
  if (!values) {
    return format("{:>10}{:>10}{:>10}{:>10}", "-", "-", "-", "-");
  }
  return format("{:>10.4f}{:>10.6f}{:>10.4f}{:>10.4f}", values->sad, values->mse, values->grad,
                values->conn);
}

std::string value_heads() {
  return format("{:>10}{:>10}{:>10}{:>10}", "SAD", "MSE", "Grad", "Conn");
}

/// Lines of a label, and cells for the unknown region, where there are trimaps, and the whole
/// image.
class Table {
 public:
  Table(std::string head, bool has_trimaps, std::string extra_head)
      : has_trimaps_{has_trimaps}, extra_head_{std::move(extra_head)} {
    lines_.push_back({std::move(head), "", ""});
  }

  void add(const std::string& label, std::string unknown, std::string all) {
    lines_.push_back(
        {shortened(printable(label), widest_label), std::move(unknown), std::move(all)});
  }

  [[nodiscard]] std::string text() const {
    size_t width = 0;
    for (const auto& line : lines_) {
      width = std::max(width, columns_of(line.label));
    }
    std::string out;
    for (const auto& line : lines_) {
      const bool is_head = &line == lines_.data();
      const std::string heads = extra_head_ + value_heads();
      out += "  " + padded(line.label, width);
      if (has_trimaps_) {
        out += is_head ? heads : line.unknown;
        out += "  ";
      }
      out += (is_head ? heads : line.all) + "\n";
    }
    return has_trimaps_ ? regions_line(width) + out : out;
  }

 private:
  struct Line {
    std::string label;
    std::string unknown;
    std::string all;
  };

  [[nodiscard]] std::string regions_line(size_t width) const {
    const size_t block = extra_head_.size() + value_heads().size();
    return std::string(width + 2, ' ') + format("{:>{}}", "unknown region", block) + "  " +
           format("{:>{}}", "whole image", block) + "\n";
  }

  bool has_trimaps_;
  std::string extra_head_;
  std::vector<Line> lines_;
};

std::string mean_cells(const std::optional<RegionMean>& mean) {
  const RegionMean shown = mean.value_or(RegionMean{});
  return format("{:>8}", shown.images) + value_cells(shown.values);
}

std::string region_cells(const std::optional<RegionRow>& region) {
  return value_cells(region ? region->values : std::nullopt);
}

}  // namespace

std::string matting_table(const MattingReport& report) {
  const size_t images = report.rows.size();
  std::string text =
      format("{} image{}, profile {}: means\n\n", images, images == 1 ? "" : "s", report.profile);
  Table means{"data set", report.has_trimaps, format("{:>8}", "images")};
  if (report.datasets.size() > 1) {
    for (const auto& [name, values] : report.datasets) {
      means.add(name.empty() ? "(no folder)" : name, mean_cells(values.unknown),
                mean_cells(values.all));
    }
  }
  means.add("all images", mean_cells(report.mean.unknown), mean_cells(report.mean.all));
  text += means.text();
  if (images > 1) {
    Table worst{"image", report.has_trimaps, ""};
    const auto order = report.worst_first();
    for (size_t i = 0; i < std::min(images, most_worst); ++i) {
      const auto& [dataset, name, row] = report.rows[order[i]];
      worst.add(dataset.empty() ? name : dataset + "/" + name, region_cells(row.unknown),
                region_cells(row.all));
    }
    text += format("\nthe worst by SAD{}\n\n", report.has_trimaps ? " of the unknown region" : "") +
            worst.text();
  }
  return text;
}

}  // namespace muster::app
