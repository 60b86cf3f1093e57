#include "src/track/report_parts_internal.h"

#include <muster/base/format.h>
#include <muster/base/text.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace muster::track {

namespace {

constexpr size_t most_rows = 2000;

bool is_count(std::string_view name) { return name == "n" || name.ends_with("/n"); }

/// The column by which "worst" is told: one that ends in /sad or loss, else the first that measures
/// something.
std::optional<size_t> worst_column(const ReportTable& table) {
  std::optional<size_t> first;
  for (size_t column = 1; column < table.columns.size(); ++column) {
    const std::string& name = table.columns[column];
    if (!table.is_number[column] || is_count(name)) {
      continue;
    }
    if (name == "sad" || name.ends_with("/sad") || name.ends_with("loss")) {
      return column;
    }
    first = first ? first : column;
  }
  return first;
}

/// NaN is worst of all, an empty cell least.
double badness(const std::string& cell) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto value = cell_number(cell);
  if (!value) {
    return -infinity;
  }
  if (std::isnan(*value)) {
    return infinity;
  }
  return *value;
}

std::vector<size_t> worst_first(const ReportTable& table, std::optional<size_t> column) {
  std::vector<size_t> order(table.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (column) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return badness(table.rows[a][*column]) > badness(table.rows[b][*column]);
    });
  }
  return order;
}

/// A bar behind the value that tells at a glance how bad it is, as a share of the worst.
std::string bar(double value, double worst) {
  const bool drawn = std::isfinite(value) && value >= 0 && std::isfinite(worst) && worst > 0;
  return drawn ? format(R"( style="--part:{:.1f}%")", 100 * value / worst) : "";
}

std::string cell_html(const std::string& cell, bool is_number, bool is_worst, double worst) {
  const auto value = cell_number(cell);
  if (!is_number || !value) {
    return format("<td{}>{}</td>", is_number ? R"( class="num")" : "", shown_text(cell));
  }
  return format(R"(<td class="num{}"{} title="{}" data-v="{}">{}</td>)", is_worst ? " bar" : "",
                is_worst ? bar(*value, worst) : "", escape_html(cell), escape_html(cell),
                readable(*value));
}

std::string head_html(const ReportTable& table, std::optional<size_t> worst) {
  std::string out = "<thead><tr>";
  for (size_t column = 0; column < table.columns.size(); ++column) {
    out += format(R"(<th scope="col" class="{}"{}><button type="button">{}</button></th>)",
                  table.is_number[column] ? "num" : "text",
                  column == worst ? R"( aria-sort="descending")" : "",
                  shown_text(table.columns[column]));
  }
  return out + "</tr></thead>";
}

/// The sample's index, as a link to its images where the stage has some.
std::string index_cell(const ReportStage& stage, const std::string& index) {
  const std::string text = escape_html(index);
  const bool pictured =
      std::any_of(stage.images.begin(), stage.images.end(),
                  [&](const ReportImage& image) { return std::to_string(image.index) == index; });
  return format(
      R"(<td class="num" data-v="{}">{}</td>)", text,
      pictured ? format(R"(<a href="#{}">{}</a>)", sample_anchor(stage.name, index), text) : text);
}

}  // namespace

std::string table_part(const ReportStage& stage, const ReportTable& table) {
  const auto worst = worst_column(table);
  const auto order = worst_first(table, worst);
  double most = 0;
  for (const auto& row : table.rows) {
    const double value = worst ? cell_number(row[*worst]).value_or(0) : 0;
    most = std::isfinite(value) ? std::max(most, value) : most;
  }
  const size_t shown = std::min(order.size(), most_rows);
  std::string out = format(R"(<h3>Samples: {}</h3><p class="note">{} rows)", shown_text(table.name),
                           table.rows.size());
  if (worst) {
    out += ", the worst by " + shown_text(table.columns[*worst]) + " first";
  }
  if (shown < order.size()) {
    out += format("; {} of them shown", shown);
  }
  out += format(". <code>tables/{}-{}.csv</code></p>", escape_html(stage.name),
                escape_html(table.name));
  out +=
      R"(<div class="scroll tall"><table class="samples">)" + head_html(table, worst) + "<tbody>\n";
  for (size_t i = 0; i < shown; ++i) {
    const auto& row = table.rows[order[i]];
    out += "<tr>" + index_cell(stage, row[0]);
    for (size_t column = 1; column < row.size(); ++column) {
      out += cell_html(row[column], table.is_number[column], column == worst, most);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace muster::track
