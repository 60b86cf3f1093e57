#include "output.h"

#include <muster/base/json_writer.h>

namespace muster::app {

namespace {

void write_values(JsonWriter& json, const std::optional<ErrorValues>& values) {
  for (const auto& column : error_columns) {
    json.key(column.name);
    if (values) {
      json.value((*values).*column.member);
    } else {
      json.null();
    }
  }
  json.end_object();
}

void write(JsonWriter& json, const RegionRow& region) {
  json.begin_object().key("n").value(region.n);
  write_values(json, region.values);
}

void write(JsonWriter& json, const RegionMean& mean) {
  json.begin_object().key("images").value(mean.images);
  write_values(json, mean.values);
}

/// "unknown" and "all" of an image or of means.
template <typename Regions>
void write_regions(JsonWriter& json, const Regions& regions) {
  json.key("unknown");
  if (regions.unknown) {
    write(json, *regions.unknown);
  } else {
    json.null();
  }
  json.key("all");
  write(json, regions.all);
}

}  // namespace

std::string matting_json(const MattingReport& report) {
  JsonWriter json{2};
  json.begin_object().key("profile").value(report.profile).key("images").begin_list();
  for (const auto& [dataset, name, row] : report.rows) {
    json.begin_object().key("name").value(name).key("dataset").value(dataset);
    json.key("width").value(row.width).key("height").value(row.height);
    write_regions(json, row);
    json.end_object();
  }
  json.end_list().key("mean").begin_object();
  write_regions(json, report.mean);
  json.end_object().key("datasets").begin_object();
  for (const auto& [name, means] : report.datasets) {
    json.key(name).begin_object();
    write_regions(json, means);
    json.end_object();
  }
  json.end_object().end_object();
  return json.text() + "\n";
}

}  // namespace muster::app
