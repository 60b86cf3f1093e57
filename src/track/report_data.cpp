#include "src/track/report_data_internal.h"

#include "src/track/csv_text_internal.h"

#include <muster/base/check.h>
#include <muster/base/files.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace muster::track {

namespace {

using Json = nlohmann::ordered_json;

template <typename Number>
std::optional<Number> read_all(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all = error == std::errc{} && end == text.data() + text.size();
  return all ? std::optional{number} : std::nullopt;
}

std::optional<double> metric_value(const Json& value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  return value.is_string() ? cell_number(value.get<std::string>()) : value.get<double>();
}

/// Throws where it is a fraction, which `get` would cast.
int64_t whole(const Json& number) { return number.get_ref<const Json::number_integer_t&>(); }

std::optional<int64_t> count_of(const Json& stage, const char* name) {
  const auto found = stage.find(name);
  return found == stage.end() ? std::nullopt : std::optional{whole(*found)};
}

ReportImage image_of(const Json& record) {
  return {.key = record.at("key").get<std::string>(),
          .step = whole(record.at("step")),
          .index = whole(record.at("index")),
          .caption = record.at("caption").get<std::string>(),
          .width = whole(record.at("width")),
          .height = whole(record.at("height")),
          .sha256 = record.at("sha256").get<std::string>()};
}

ReportStage stage_of(const std::string& name, const Json& body) {
  ReportStage stage{.name = name,
                    .samples = count_of(body, "samples"),
                    .epochs = count_of(body, "epochs"),
                    .steps = count_of(body, "steps")};
  if (const auto metrics = body.find("metrics"); metrics != body.end()) {
    for (const auto& [metric, value] : metrics->items()) {
      stage.metrics.push_back({metric, metric_value(value)});
    }
  }
  if (const auto images = body.find("images"); images != body.end()) {
    std::transform(images->begin(), images->end(), std::back_inserter(stage.images), image_of);
  }
  return stage;
}

/// A column is one of numbers when it has some and nothing else but empty cells.
bool holds_numbers(const ReportTable& table, size_t column) {
  bool any = false;
  for (const auto& row : table.rows) {
    if (!row[column].empty()) {
      any = true;
      if (!cell_number(row[column])) {
        return false;
      }
    }
  }
  return any;
}

/// Undoes csv_text's guard against formulas: nothing is run from an HTML page.
void drop_guard(std::string& cell) {
  if (cell.size() > 1 && cell[0] == '\'' &&
      std::string_view{"=+-@\t\r"}.find(cell[1]) != std::string_view::npos) {
    cell.erase(0, 1);
  }
}

ReportTable read_table(const std::filesystem::path& path, std::string name) {
  ReportTable table{.name = std::move(name)};
  table.rows = parse_csv(read_file(path), std::numeric_limits<size_t>::max()).rows;
  if (table.rows.empty()) {
    return table;
  }
  table.columns = std::move(table.rows.front());
  table.rows.erase(table.rows.begin());
  for (auto& row : table.rows) {
    row.resize(table.columns.size());
    std::for_each(row.begin(), row.end(), drop_guard);
  }
  for (size_t column = 0; column < table.columns.size(); ++column) {
    table.is_number.push_back(holds_numbers(table, column));
  }
  return table;
}

void read_tables(const std::filesystem::path& folder, std::vector<ReportStage>& stages) {
  if (!std::filesystem::is_directory(folder)) {
    return;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const std::string stem = path.stem().string();
    for (auto& stage : stages) {
      if (path.extension() == ".csv" && stem.starts_with(stage.name + "-")) {
        stage.tables.push_back(read_table(path, stem.substr(stage.name.size() + 1)));
      }
    }
  }
}

/// Tables in the order in which the metrics name them (NAME/COLUMN), others after them.
void order_tables(ReportStage& stage) {
  const auto place = [&](const ReportTable& table) {
    return std::find_if(
        stage.metrics.begin(), stage.metrics.end(),
        [&](const ReportMetric& metric) { return metric.name.starts_with(table.name + "/"); });
  };
  std::stable_sort(stage.tables.begin(), stage.tables.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

std::vector<ReportCurve> read_curves(const std::filesystem::path& path) {
  std::vector<ReportCurve> curves;
  const auto text = read_file_if_there(path);
  const auto rows = parse_csv(text.value_or(""), std::numeric_limits<size_t>::max()).rows;
  for (size_t column = 2; !rows.empty() && column < rows.front().size(); ++column) {
    ReportCurve curve{.name = rows.front()[column]};
    for (size_t i = 1; i < rows.size(); ++i) {
      const auto step = cell_number(rows[i].front());
      const auto value =
          column < rows[i].size() ? cell_number(rows[i][column]) : std::optional<double>{};
      if (step && value && std::isfinite(*step) && std::isfinite(*value)) {
        curve.points[*step] = *value;
      }
    }
    if (curve.points.size() > 1) {
      curves.push_back(std::move(curve));
    }
  }
  return curves;
}

}  // namespace

std::optional<double> cell_number(std::string_view cell) { return read_all<double>(cell); }

std::vector<ReportStage> read_results(const std::filesystem::path& path) {
  std::vector<ReportStage> stages;
  const auto text = read_file_if_there(path);
  if (!text) {
    return stages;
  }
  // nlohmann's parser takes a zero byte for the end of the text.
  check(text->find('\0') == std::string::npos, ErrorKind::data,
        "{} is not what Muster writes: it holds zero bytes", path.string());
  try {
    const auto results = Json::parse(*text);
    for (const auto& [name, body] : results.get_ref<const Json::object_t&>()) {
      static_cast<void>(body.get_ref<const Json::object_t&>());  // throws where it is no object
      stages.push_back(stage_of(name, body));
    }
  } catch (const Json::exception& error) {
    fail(ErrorKind::data, "{} is not what Muster writes: {}", path.string(), error.what());
  }
  return stages;
}

ReportData read_report_data(const std::filesystem::path& run_dir) {
  ReportData data{.stages = read_results(run_dir / "results.json"),
                  .curves = read_curves(run_dir / "metrics.csv")};
  read_tables(run_dir / "tables", data.stages);
  for (auto& stage : data.stages) {
    order_tables(stage);
  }
  return data;
}

std::map<int64_t, std::string> sample_labels(const ReportStage& stage) {
  std::map<int64_t, std::string> labels;
  for (const auto& table : stage.tables) {
    for (const auto& row : table.rows) {
      std::string label;
      for (size_t column = 1; column < row.size(); ++column) {
        if (!table.is_number[column] && !row[column].empty()) {
          label += (label.empty() ? "" : " / ") + row[column];
        }
      }
      const auto index = read_all<int64_t>(row.front());
      if (index && !label.empty()) {
        labels.try_emplace(*index, label);
      }
    }
  }
  return labels;
}

}  // namespace muster::track
