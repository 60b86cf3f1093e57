#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::track {

/// What the report shows, as it was read from the run folder.
struct ReportMetric {
  std::string name{};
  std::optional<double> value{};  ///< nothing: no sample contributed
};

struct ReportImage {
  std::string key{};
  int64_t step = 0;
  int64_t index = 0;
  std::string caption{};
  int64_t width = 0;
  int64_t height = 0;
  std::string sha256{};
};

struct ReportTable {
  std::string name{};
  std::vector<std::string> columns{};            ///< `index` first
  std::vector<bool> is_number{};                 ///< by column
  std::vector<std::vector<std::string>> rows{};  ///< as many cells as columns
};

struct ReportStage {
  std::string name{};  ///< fit, validate, test or predict
  std::optional<int64_t> samples{};
  std::optional<int64_t> epochs{};
  std::optional<int64_t> steps{};
  std::vector<ReportMetric> metrics{};
  std::vector<ReportImage> images{};
  std::vector<ReportTable> tables{};
};

/// Values of one name over the steps, with the last of each step; finite ones only.
struct ReportCurve {
  std::string name{};
  std::map<double, double> points{};
};

struct ReportData {
  std::vector<ReportStage> stages{};  ///< those that ran, in the order of results.json
  std::vector<ReportCurve> curves{};  ///< of two points or more
};

/// Reads results.json, tables/*.csv and metrics.csv. Error of kind `data` when results.json is
/// none.
ReportData read_report_data(const std::filesystem::path& run_dir);

/// The stages of a results.json, without tables; none when there is no such file. Error of kind
/// `data` when it is none.
std::vector<ReportStage> read_results(const std::filesystem::path& path);

/// The cell as a number, when all of it is one.
std::optional<double> cell_number(std::string_view cell);

/// What describes the samples of a stage: its tables' texts by sample index.
std::map<int64_t, std::string> sample_labels(const ReportStage& stage);

}  // namespace muster::track
