#include "src/track/csv_text_internal.h"
#include "src/track/json_members_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>
#include <muster/base/json_writer.h>
#include <muster/base/text.h>
#include <muster/track/results.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace muster {

namespace {

constexpr std::array<std::string_view, 4> stages{"fit", "validate", "test", "predict"};

void check_stage(std::string_view stage) {
  check(std::find(stages.begin(), stages.end(), stage) != stages.end(),
        "a stage is fit, validate, test or predict; found '{}'", stage);
}

void put_metrics(JsonWriter& json, const Report& report) {
  json.key("metrics").begin_object();
  for (const auto& [name, value] : report.metrics) {
    json.key(name);
    if (value) {
      json.value(*value);
    } else {
      json.null();
    }
  }
  json.end_object();
}

void put_images(JsonWriter& json, std::span<const ImageRecord> images) {
  json.key("images").begin_list();
  for (const auto& image : images) {
    json.begin_object();
    json.key("key").value(image.key);
    json.key("step").value(image.step);
    json.key("index").value(image.index);
    json.key("caption").value(image.caption);
    json.key("width").value(image.width);
    json.key("height").value(image.height);
    json.key("sha256").value(image.sha256);
    json.end_object();
  }
  json.end_list();
}

void put_stage(JsonWriter& json, const Report& report, std::span<const ImageRecord> images) {
  json.begin_object();
  if (report.stage == "predict") {
    json.key("samples").value(report.samples);
    put_images(json, images);
    if (!report.metrics.empty()) {
      put_metrics(json, report);
    }
  } else {
    put_metrics(json, report);
    if (report.stage == "fit") {
      json.key("epochs").value(report.epoch);
      json.key("steps").value(report.step);
    } else {
      json.key("samples").value(report.samples);
    }
    if (report.stage != "fit" || !images.empty()) {
      put_images(json, images);
    }
  }
  json.end_object();
}

std::string cell_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return csv_text(*text);
  }
  const auto* number = std::get_if<double>(&cell);
  return number != nullptr ? shortest(*number) : "";
}

/// Views of `text`, which a file that is not there leaves empty.
std::vector<track::JsonMember> stages_in(const std::optional<std::string>& text,
                                         const std::filesystem::path& path) {
  return text ? track::json_members(*text, path.string()) : std::vector<track::JsonMember>{};
}

}  // namespace

void check_results(const std::filesystem::path& run_dir) {
  const auto path = run_dir / "results.json";
  static_cast<void>(stages_in(read_file_if_there(path), path));
}

void replace_stage(const std::filesystem::path& run_dir, const Report& report,
                   std::span<const ImageRecord> images) {
  check_stage(report.stage);
  const auto path = run_dir / "results.json";
  const auto before = read_file_if_there(path);
  const auto kept = stages_in(before, path);
  JsonWriter json{2};
  json.begin_object();
  for (const auto stage : stages) {
    if (stage == report.stage) {
      put_stage(json.key(stage), report, images);
      continue;
    }
    const auto same = [&](const auto& member) { return member.name == stage; };
    const auto found = std::find_if(kept.begin(), kept.end(), same);
    if (found != kept.end()) {
      json.key(stage).raw(found->raw);
    }
  }
  json.end_object();
  write_file_atomically(path, json.text() + "\n");
}

bool is_table_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

void write_table(const std::filesystem::path& run_dir, const Table& table) {
  check_stage(table.stage);
  check(is_table_name(table.name), "a table's name has the characters [A-Za-z0-9._-]; found '{}'",
        table.name);
  std::string text = "index";
  for (const auto& column : table.columns) {
    text += "," + track::csv_name(column);
  }
  text += "\n";
  std::optional<int64_t> last;
  for (const auto& row : table.rows) {
    check(row.cells.size() == table.columns.size(),
          "the row of sample {} in table {} has {} cells for {} columns", row.index, table.name,
          row.cells.size(), table.columns.size());
    check(!last || *last < row.index, "the rows of table {} do not rise: sample {} stands after {}",
          table.name, row.index, last.value_or(0));
    last = row.index;
    text += std::to_string(row.index);
    for (const auto& cell : row.cells) {
      text += "," + cell_text(cell);
    }
    text += "\n";
  }
  write_file_atomically(run_dir / "tables" / (table.stage + "-" + table.name + ".csv"), text);
}

void remove_stage_tables(const std::filesystem::path& run_dir, std::string_view stage) {
  check_stage(stage);
  const auto folder = run_dir / "tables";
  if (!std::filesystem::is_directory(folder)) {
    return;
  }
  const std::string prefix = std::string{stage} + "-";
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    if (entry.path().filename().string().starts_with(prefix)) {
      old.push_back(entry.path());
    }
  }
  for (const auto& path : old) {
    std::filesystem::remove(path);
  }
}

}  // namespace muster
