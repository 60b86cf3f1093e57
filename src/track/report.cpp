#include "src/track/report_parts_internal.h"

#include <muster/base/digest.h>
#include <muster/base/files.h>
#include <muster/base/format.h>
#include <muster/base/text.h>
#include <muster/track/report.h>

namespace muster {

namespace {

std::string bytes_of_hex(std::string_view digits) {
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  }
  return bytes;
}

/// Nothing may be loaded, and no script may run but the one whose digest this is.
std::string content_policy(std::string_view script) {
  return "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-" +
         base64(bytes_of_hex(sha256_hex(script))) + "'; base-uri 'none'; form-action 'none'";
}

std::string counted(int64_t number, std::string_view what) {
  return format("<b>{}</b> {}{}", number, what, number == 1 ? "" : "s");
}

/// What a stage did, in a few words.
std::string totals(const track::ReportStage& stage) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : " · ") + part; };
  if (stage.epochs) {
    add(counted(*stage.epochs, "epoch"));
  }
  if (stage.steps) {
    add(counted(*stage.steps, "step"));
  }
  if (stage.samples) {
    add(counted(*stage.samples, "sample"));
  }
  if (!stage.images.empty()) {
    add(counted(static_cast<int64_t>(stage.images.size()), "image"));
  }
  return out;
}

std::string header_html(const std::string& name, const track::ReportData& data) {
  std::string out =
      R"(<header><p class="over">Muster run</p><h1>)" + track::shown_text(name) + "</h1>\n<nav>";
  if (!data.curves.empty()) {
    out += format("<a href=\"#curves\"><span>curves</span> <b>{}</b></a>\n", data.curves.size());
  }
  for (const auto& stage : data.stages) {
    out += format("<a href=\"#{}\"><span>{}</span> {}</a>\n", escape_html(stage.name),
                  escape_html(stage.name), totals(stage));
  }
  return out + "</nav></header>\n";
}

std::string stage_html(const track::ReportStage& stage, const std::filesystem::path& media,
                       track::PictureBudget& budget) {
  std::string out =
      format("<section id=\"{}\"><h2>{}</h2>\n", escape_html(stage.name), escape_html(stage.name));
  out += track::metrics_part(stage.metrics);
  for (const auto& table : stage.tables) {
    out += track::table_part(stage, table);
  }
  return out + track::gallery_part(stage, media, budget) + "</section>\n";
}

}  // namespace

void write_report(const std::filesystem::path& run_dir) {
  const auto data = track::read_report_data(run_dir);
  const std::string name =
      std::filesystem::absolute(run_dir / "x").parent_path().lexically_normal().filename().string();
  const std::string script{track::report_script()};
  track::PictureBudget budget;
  std::string body = header_html(name, data) + "<main>\n" + track::curves_part(data.curves);
  for (const auto& stage : data.stages) {
    body += stage_html(stage, run_dir / "media", budget);
  }
  if (budget.left_out > 0) {
    body += format(
        "<p class=\"note\">{} pictures are not on this page; they lie in the run folder.</p>\n",
        budget.left_out);
  }
  body += "</main>\n";
  write_file_atomically(
      run_dir / "report.html",
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      R"(<meta http-equiv="Content-Security-Policy" content=")" +
          content_policy(script) +
          "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
          escape_html(name) + " · Muster</title>\n<style>" + std::string{track::report_style()} +
          "</style></head>\n<body>\n" + body + "<script>" + script + "</script>\n</body></html>\n");
}

}  // namespace muster
