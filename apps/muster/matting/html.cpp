#include "html_style.h"
#include "output.h"
#include "terminal.h"

#include <muster/base/format.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>

#include <algorithm>
#include <utility>

namespace muster::app {

namespace {

constexpr size_t most_rows = 5000;

/// Escaped, and unable to turn the direction of what is beside it.
std::string shown(std::string_view text) {
  return "<bdi>" + escape_html(printable(text)) + "</bdi>";
}

std::string readable(double value) {
  return value != 0 && (value < 1e-4 || value >= 1e6) ? format("{:.3e}", value)
                                                      : format("{:#.4g}", value);
}

std::string value_cells(const std::optional<ErrorValues>& values) {
  std::string out;
  for (const auto& column : error_columns) {
    if (values) {
      const double value = (*values).*column.member;
      out += format(R"(<td class="num" title="{}">{}</td>)", shortest(value), readable(value));
    } else {
      out += R"(<td class="num none">–</td>)";
    }
  }
  return out;
}

std::string heads(bool has_trimaps, std::string_view first, std::string_view count) {
  constexpr std::string_view names =
      "<th class=\"num\">SAD</th><th class=\"num\">MSE</th>"
      "<th class=\"num\">Grad</th><th class=\"num\">Conn</th>";
  const std::string block = format(R"(<th class="num first">{}</th>)", count) + std::string{names};
  std::string out = "<thead>";
  if (has_trimaps) {
    out += R"(<tr><td></td><th colspan="5" class="group first">unknown region</th>)"
           R"(<th colspan="5" class="group first">whole image</th></tr>)";
  }
  return out + format("<tr><th>{}</th>", first) + (has_trimaps ? block : "") + block +
         "</tr></thead>";
}

std::string mean_cells(const RegionMean& mean) {
  return format(R"(<td class="num first">{}</td>)", mean.images) + value_cells(mean.values);
}

std::string mean_row(std::string_view label, const Means& means) {
  return format("<tr><th>{}</th>", label) + (means.unknown ? mean_cells(*means.unknown) : "") +
         mean_cells(means.all) + "</tr>\n";
}

std::string means_part(const MattingReport& report) {
  std::string out = R"(<section><h2>Means</h2><div class="scroll"><table class="matrix">)" +
                    heads(report.has_trimaps, "data set", "images") + "<tbody>\n";
  if (report.datasets.size() > 1) {
    for (const auto& [name, means] : report.datasets) {
      out += mean_row(name.empty() ? "(no folder)" : shown(name), means);
    }
  }
  return out + mean_row("<b>all images</b>", report.mean) + "</tbody></table></div></section>\n";
}

std::string full_name(const NamedRow& named) {
  return named.dataset.empty() ? named.name : named.dataset + "/" + named.name;
}

std::string figure(const std::string& png, std::string_view what, const std::string& name) {
  return format(R"(<figure><img alt="{} of {}" src="data:image/png;base64,{}">)"
                "<figcaption>{}</figcaption></figure>",
                what, escape_html(name), base64(png), what);
}

std::string facts(const RegionRow& region, std::string_view label) {
  std::string out = format("<dt>{}</dt><dd>", label);
  if (!region.values) {
    return out + "no pixels</dd>";
  }
  constexpr std::array names{"SAD", "MSE", "Grad", "Conn"};
  for (size_t i = 0; i < names.size(); ++i) {
    out += format("{}<span>{} <b>{}</b></span>", i == 0 ? "" : " · ", names[i],
                  readable((*region.values).*error_columns[i].member));
  }
  return out + "</dd>";
}

std::string card(size_t place, const NamedRow& named, const Thumbnails& thumbnails) {
  const std::string name = full_name(named);
  std::string out = format(
      R"(<section class="sample"><h3><span class="index">{}</span>{} <span class="size">{} × {}</span></h3><dl>)",
      place, shown(name), named.row.width, named.row.height);
  if (named.row.unknown) {
    out += facts(*named.row.unknown, "unknown");
  }
  return out + facts(named.row.all, "whole") + "</dl><div class=\"figures\">" +
         figure(thumbnails.prediction, "prediction", name) +
         figure(thumbnails.truth, "truth", name) + figure(thumbnails.error, "error", name) +
         "</div></section>\n";
}

std::string gallery_part(const MattingReport& report, const std::vector<size_t>& order) {
  if (report.thumbnails.empty()) {
    return "";
  }
  std::string cards;
  size_t place = 0;
  for (const size_t at : order) {
    const auto& named = report.rows[at];
    const auto found = report.thumbnails.find(named.row.index);
    if (found != report.thumbnails.end()) {
      cards += card(++place, named, found->second);
    }
  }
  const std::string count = place < report.rows.size()
                                ? format("{} of {} images, the", place, report.rows.size())
                                : "The";
  return format(
             "<section><h2>Worst images</h2><p class=\"note\">{} worst by SAD{} first. Error: "
             "the largest |p − g| of each place, <span class=\"heat\"></span> from 0 to 1.</p>"
             "<div class=\"gallery\">\n",
             count, report.has_trimaps ? " of the unknown region" : "") +
         cards + "</div></section>\n";
}

std::string image_cells(const std::optional<RegionRow>& region) {
  return format(R"(<td class="num first">{}</td>)", region ? std::to_string(region->n) : "–") +
         value_cells(region ? region->values : std::nullopt);
}

std::string images_part(const MattingReport& report, const std::vector<size_t>& order) {
  std::string out = "<section><h2>All images</h2>";
  if (order.size() > most_rows) {
    out += format("<p class=\"note\">The {} worst of {}; the JSON and CSV files have all.</p>",
                  most_rows, order.size());
  }
  out += R"(<div class="scroll tall"><table class="matrix">)" +
         heads(report.has_trimaps, "image", "pixels") + "<tbody>\n";
  for (size_t i = 0; i < std::min(order.size(), most_rows); ++i) {
    const auto& named = report.rows[order[i]];
    out += format("<tr><th>{}</th>", shown(full_name(named)));
    out += (report.has_trimaps ? image_cells(named.row.unknown) : "") + image_cells(named.row.all) +
           "</tr>\n";
  }
  return out + "</tbody></table></div></section>\n";
}

std::string problems_part(const MattingReport& report) {
  if (report.problems.empty()) {
    return "";
  }
  std::string out = "<section><h2>Problems</h2><ul class=\"problems\">\n";
  for (const auto& problem : report.problems) {
    const bool is_error = problem.kind == Problem::Kind::error;
    out += format("<li class=\"{0}\"><b>{0}</b> {1}</li>\n", is_error ? "error" : "warning",
                  shown(problem.text));
  }
  return out + "</ul></section>\n";
}

std::string header_part(const MattingReport& report) {
  const auto errors =
      std::count_if(report.problems.begin(), report.problems.end(),
                    [](const Problem& problem) { return problem.kind == Problem::Kind::error; });
  std::string out = format(
      "<header><p class=\"over\">Muster · matting errors</p><h1>{}</h1>\n"
      "<p class=\"note\">against {} · profile <b>{}</b> · <b>{}</b> image{}",
      shown(report.prediction), shown(report.truth), escape_html(report.profile),
      report.rows.size(), report.rows.size() == 1 ? "" : "s");
  if (errors > 0) {
    out += format(" · <b class=\"error\">{} error{}</b>, listed below", errors,
                  errors == 1 ? "" : "s");
  }
  return out +
         "</p>\n<p class=\"note\">SAD, Grad and Conn are sums over a region, divided by 1000" +
         (report.profile == "p3m" ? " (Grad by 10)" : "") +
         "; MSE is a mean, not scaled. A mean over images counts each image once.</p></header>\n";
}

}  // namespace

std::string matting_html(const MattingReport& report) {
  const auto order = report.worst_first();
  std::string body = header_part(report) + "<main>\n" + means_part(report);
  if (!order.empty()) {
    body += gallery_part(report, order) + images_part(report, order);
  }
  body += problems_part(report) + "</main>\n";
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src "
         "data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         escape_html(report.prediction) + " · Muster</title>\n<style>" + std::string{html_style()} +
         "</style></head>\n<body>\n" + body + "</body></html>\n";
}

}  // namespace muster::app
