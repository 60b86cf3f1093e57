#include "src/track/report_parts_internal.h"

#include <muster/base/format.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>

#include <algorithm>
#include <map>

namespace muster::track {

namespace {

/// val/unknown/sad stands in row `val`, under `unknown`, in column `sad`.
struct Place {
  std::string row;
  std::string group;  ///< "" where the rest has no slash
  std::string column;
};

std::optional<Place> place_of(const std::string& name) {
  const auto first = name.find('/');
  if (first == std::string::npos || first == 0 || first + 1 == name.size()) {
    return std::nullopt;
  }
  const std::string rest = name.substr(first + 1);
  const auto last = rest.rfind('/');
  return last == std::string::npos
             ? Place{name.substr(0, first), "", rest}
             : Place{name.substr(0, first), rest.substr(0, last), rest.substr(last + 1)};
}

struct Matrix {
  std::vector<std::string> rows{};
  std::vector<std::pair<std::string, std::vector<std::string>>> groups{};  ///< with their columns
  std::map<std::string, const ReportMetric*> cells{};                      ///< by full name
  std::vector<const ReportMetric*> others{};
};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) {
    list.push_back(text);
  }
}

std::vector<std::string>& columns_of(Matrix& matrix, const std::string& group) {
  for (auto& [name, columns] : matrix.groups) {
    if (name == group) {
      return columns;
    }
  }
  return matrix.groups.emplace_back(group, std::vector<std::string>{}).second;
}

/// A prefix is a row when it has three values or more.
Matrix matrix_of(const std::vector<ReportMetric>& metrics) {
  std::map<std::string, int> values_of;
  for (const auto& metric : metrics) {
    if (const auto place = place_of(metric.name)) {
      ++values_of[place->row];
    }
  }
  Matrix matrix;
  for (const auto& metric : metrics) {
    const auto place = place_of(metric.name);
    if (!place || values_of[place->row] < 3) {
      matrix.others.push_back(&metric);
      continue;
    }
    add_once(matrix.rows, place->row);
    add_once(columns_of(matrix, place->group), place->column);
    matrix.cells[metric.name] = &metric;
  }
  return matrix;
}

std::string exact_text(const ReportMetric& metric) {
  return metric.value ? shortest(*metric.value) : "no sample";
}

std::string value_cell(const ReportMetric* metric, std::string_view kind) {
  if (metric == nullptr) {
    return format(R"(<td class="{}"></td>)", kind);
  }
  const std::string exact = exact_text(*metric);
  return format(R"(<td class="{}" title="{} = {}" data-v="{}">{}</td>)", kind,
                escape_html(metric->name), exact, exact,
                metric->value ? readable(*metric->value) : "–");
}

std::string matrix_head(const Matrix& matrix) {
  std::string groups = "<tr><td></td>";
  std::string columns = "<tr><td></td>";
  bool any_group = false;
  for (const auto& [group, names] : matrix.groups) {
    any_group = any_group || !group.empty();
    groups += format(R"(<th class="first group" colspan="{}" scope="colgroup">{}</th>)",
                     names.size(), shown_text(group));
    for (const auto& name : names) {
      columns += format(R"(<th class="{}" scope="col">{}</th>)",
                        &name == names.data() ? "num first" : "num", shown_text(name));
    }
  }
  return "<thead>" + (any_group ? groups + "</tr>" : "") + columns + "</tr></thead>";
}

std::string matrix_html(const Matrix& matrix) {
  std::string out =
      R"(<div class="scroll"><table class="matrix">)" + matrix_head(matrix) + "<tbody>";
  for (const auto& row : matrix.rows) {
    out += R"(<tr><th scope="row">)" + shown_text(row) + "</th>";
    for (const auto& [group, names] : matrix.groups) {
      std::string prefix = row + "/";
      if (!group.empty()) {
        prefix.append(group).append("/");
      }
      for (const auto& name : names) {
        const auto found = matrix.cells.find(prefix + name);
        out += value_cell(found == matrix.cells.end() ? nullptr : found->second,
                          &name == names.data() ? "num first" : "num");
      }
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

}  // namespace

std::string metrics_part(const std::vector<ReportMetric>& metrics) {
  if (metrics.empty()) {
    return "";
  }
  const Matrix matrix = matrix_of(metrics);
  std::string out = "<h3>Final metrics</h3>";
  if (!matrix.rows.empty()) {
    out += matrix_html(matrix);
  }
  if (!matrix.others.empty()) {
    out += R"(<div class="scroll"><table class="list"><tbody>)";
    for (const auto* metric : matrix.others) {
      out += R"(<tr><th scope="row">)" + shown_text(metric->name) + "</th>" +
             value_cell(metric, "num") + "</tr>";
    }
    out += "</tbody></table></div>";
  }
  out += format(
      "<details><summary>All {} by full name, every digit</summary>"
      R"(<div class="scroll"><table class="list exact"><tbody>)",
      metrics.size());
  for (const auto& metric : metrics) {
    out += R"(<tr><th scope="row">)" + shown_text(metric.name) + R"(</th><td class="num">)" +
           exact_text(metric) + "</td></tr>";
  }
  return out + "</tbody></table></div></details>\n";
}

}  // namespace muster::track
