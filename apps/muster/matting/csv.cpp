#include "output.h"

#include <muster/base/json_writer.h>
#include <muster/base/text.h>

namespace muster::app {

namespace {

std::string heads(std::string_view region) {
  std::string text = "," + std::string{region} + "/n";
  for (const auto& column : error_columns) {
    text.append(",").append(region).append("/").append(column.name);
  }
  return text;
}

std::string cells(const std::optional<RegionRow>& region) {
  std::string text = ",";
  if (region) {
    text += std::to_string(region->n);
  }
  for (const auto& column : error_columns) {
    text += ',';
    if (region && region->values) {
      text += shortest((*region->values).*column.member);
    }
  }
  return text;
}

std::string text_cell(const std::string& text) { return csv_text(valid_utf8(text)); }

}  // namespace

std::string matting_csv(const MattingReport& report) {
  std::string csv = "dataset,name,width,height" + heads("unknown") + heads("all") + "\n";
  for (const auto& [dataset, name, row] : report.rows) {
    csv += text_cell(dataset) + "," + text_cell(name) + "," + std::to_string(row.width) + "," +
           std::to_string(row.height) + cells(row.unknown) + cells(row.all) + "\n";
  }
  return csv;
}

}  // namespace muster::app
